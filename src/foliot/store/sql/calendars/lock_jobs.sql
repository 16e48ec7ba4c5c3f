-- purpose: keep everybody else from firing or changing these jobs until the transaction ends
-- caller: store.calendars
-- transition: none
-- fence: none
-- index: jobs_pkey
select j.id
  from foliot.jobs j
 where j.id = any($1::uuid[]) and j.status in ('ACTIVE', 'PAUSED')
 order by j.id
   for no key update;
