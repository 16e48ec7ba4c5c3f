-- purpose: what days a calendar excludes
-- caller: store.calendars
-- transition: none
-- fence: none
-- index: calendars_pkey
select c.definition from foliot.calendars c where c.tenant_id = $1::uuid and c.name = $2::text;
