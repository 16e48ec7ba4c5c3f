// graphile-worker: `fill 60000` puts so many jobs into an empty database, `drain 60000` works them
// off, with the settings that its own page on performance names for the figures there: 24 jobs at
// once, 500 fetched ahead into a local queue, completions written in batches. Of a job that is over
// nothing is kept: its row is deleted.

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const FILL_BATCH = 1000;
const LOOK_MILLISECONDS = 5;
const LEFT = "select exists (select from graphile_worker._private_jobs) as found";
const connectionString = process.env.DATABASE_URL;
const seconds = () => performance.now() / 1000;
const silent = new Logger(() => () => {});

async function fill(jobs) {
  const utils = await makeWorkerUtils({ connectionString, logger: silent });
  await utils.migrate();
  const began = seconds();
  for (let first = 0; first < jobs; first += FILL_BATCH) {
    const length = Math.min(FILL_BATCH, jobs - first);
    await utils.addJobs(Array.from({ length }, () => ({ identifier: "noop" })));
  }
  const perSecond = jobs / (seconds() - began);
  await utils.release();
  return perSecond;
}

async function drain(jobs) {
  const looking = new pg.Client({ connectionString });
  await looking.connect();
  let ran = 0;
  let tell;
  const allRan = new Promise((resolve) => (tell = resolve));
  const noop = async () => {
    ran += 1;
    if (ran === jobs) tell();
  };
  const preset = {
    worker: {
      connectionString,
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
  const began = seconds();
  const runner = await run({ preset, logger: silent, noHandleSignals: true, taskList: { noop } });
  await allRan;
  while ((await looking.query(LEFT)).rows[0].found) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MILLISECONDS));
  }
  const perSecond = jobs / (seconds() - began);
  await runner.stop();
  await looking.end();
  return perSecond;
}

const [verb, jobs] = process.argv.slice(2);
const perSecond = await { fill, drain }[verb](Number(jobs));
console.log(JSON.stringify({ per_s: perSecond }));
