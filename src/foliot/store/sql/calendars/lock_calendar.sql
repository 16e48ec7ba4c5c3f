-- purpose: keep everybody else from changing a calendar, or from making it the calendar of a job
-- caller: store.calendars
-- transition: none
-- fence: none
-- index: calendars_pkey
select c.definition
  from foliot.calendars c
 where c.tenant_id = $1::uuid and c.name = $2::text
   for no key update;
