// River: `fill 40000` puts so many jobs into an empty database, `drain 40000` works them off, with
// the settings that its own benchmark uses: 2,000 at once, fetched as often as every 2 ms. Of a job
// that is over it keeps the row, marked as completed, for a day.
package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	fillBatch  = 1000
	maxWorkers = 2000
	lookEvery  = 5 * time.Millisecond
	left       = "select exists (select from river_job where state <> 'completed')"
)

type noopArgs struct{}

func (noopArgs) Kind() string { return "noop" }

type noopWorker struct {
	river.WorkerDefaults[noopArgs]
	jobs   int64
	ran    atomic.Int64
	allRan chan struct{}
}

func (w *noopWorker) Work(context.Context, *river.Job[noopArgs]) error {
	if w.ran.Add(1) == w.jobs {
		close(w.allRan)
	}
	return nil
}

func fill(ctx context.Context, pool *pgxpool.Pool, jobs int) (float64, error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	client, err := newClient(pool, &river.Config{})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	for first := 0; first < jobs; first += fillBatch {
		batch := make([]river.InsertManyParams, min(fillBatch, jobs-first))
		for n := range batch {
			batch[n].Args = noopArgs{}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return 0, err
		}
	}
	return float64(jobs) / time.Since(began).Seconds(), nil
}

func drain(ctx context.Context, pool *pgxpool.Pool, jobs int) (float64, error) {
	worker := &noopWorker{jobs: int64(jobs), allRan: make(chan struct{})}
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	client, err := newClient(pool, &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:           workers,
	})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	<-worker.allRan
	for found := true; found; {
		if err := pool.QueryRow(ctx, left).Scan(&found); err != nil {
			return 0, err
		}
		time.Sleep(lookEvery)
	}
	perSecond := float64(jobs) / time.Since(began).Seconds()
	return perSecond, client.Stop(ctx)
}

func newClient(pool *pgxpool.Pool, config *river.Config) (*river.Client[pgx.Tx], error) {
	config.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return river.NewClient(riverpgxv5.New(pool), config)
}

func run() (float64, error) {
	ctx := context.Background()
	jobs, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return 0, err
	}
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if os.Args[1] == "fill" {
		return fill(ctx, pool, jobs)
	}
	return drain(ctx, pool, jobs)
}

func main() {
	perSecond, err := run()
	if err != nil {
		panic(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]float64{"per_s": perSecond}); err != nil {
		panic(err)
	}
}
