-- purpose: the next instants of jobs whose calendar has changed, each in a new version
-- caller: store.calendars
-- transition: job EXHAUST: ACTIVE -> COMPLETED
-- fence: under the locks of the jobs
-- index: jobs_pkey
select foliot.replan_jobs($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::boolean[], $5::text,
                          $6::text, $7::timestamptz);
