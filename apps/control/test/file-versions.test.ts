import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { createLog } from '../src/log.ts'
import { Metrics } from '../src/metrics.ts'
import { FileVersions } from '../src/sandbox/file-versions.ts'
import { SandboxdClient } from '../src/sandbox/sandboxd-client.ts'
import { StatusEvents } from '../src/sandbox/status-events.ts'
import { SandboxVersions } from '../src/versions/sandbox-versions.ts'
import { QUIET_MS } from '../src/versions/sync-state.ts'
import { VersionMetrics } from '../src/versions/version-metrics.ts'
import { VERSION_SCHEMA } from '../src/versions/version-schema.ts'
import { VersionStore } from '../src/versions/version-store.ts'
import { sqlOf } from './support/bun-sql.ts'
import { SandboxModel } from './support/versions-simulator/sandbox-model.ts'
import { openStoreModel } from './support/versions-simulator/store-model.ts'

/** When control looks at a sandbox that has started for the first time. */
const FIRST_LOOK_MS = 3_000

/** Watches a sandbox for a while, in virtual time, and changes a file at the given times. Returns when versions were saved. */
async function watch(changesAtMs: readonly number[], untilMs: number): Promise<readonly number[]> {
  let nowMs = 0
  const sandbox = new SandboxModel('files', { call: async (_, effect) => effect(), sleep })
  const sql = sqlOf(new Database(':memory:'))
  for (const statement of VERSION_SCHEMA) sql.exec(statement)
  const store = new VersionStore((query, ...bindings) => sql.exec(query, ...bindings).toArray())
  const left = changesAtMs.toSorted((a, b) => a - b)
  async function sleep(ms: number): Promise<void> {
    // A wait for a change ends with it.
    const endMs = nowMs + ms
    while (nowMs < endMs) {
      nowMs = Math.min(endMs, left[0] ?? endMs)
      if (left[0] !== nowMs) continue
      left.shift()
      sandbox.write('f1', `at ${nowMs}`)
      if (ms > 1_000) return
    }
  }
  const sandboxd = (id: string): SandboxdClient =>
    new SandboxdClient({
      sandbox: id,
      provider: sandbox,
      signer: { publicKey: 'k', sign: async () => 'token' },
      nowMs: () => nowMs,
    })
  await sandbox.start()
  const watching = Promise.withResolvers<void>()
  const savedMs: number[] = []
  const versions = new SandboxVersions({
    store,
    segments: openStoreModel(new Map(), async (_, effect) => effect()),
    admit: async () => undefined,
    sandboxd,
    nowMs: () => nowMs,
    sleep,
    randomHex: (bytes) => (savedMs.length + nowMs).toString(16).padStart(bytes * 2, '0'),
  })
  const files = new FileVersions({
    store,
    versions,
    losesFiles: false,
    provider: 'simulated',
    events: new StatusEvents(),
    metrics: new VersionMetrics(new Metrics(), () => nowMs),
    sandboxd,
    running: () =>
      nowMs >= untilMs
        ? undefined
        : {
            sandbox: 'box',
            state: {
              kind: 'running',
              address: sandbox.epoch,
              epoch: sandbox.epoch,
              startedMs: 0,
            },
          },
    nowMs: () => nowMs,
    sleep,
    log: createLog(
      () => undefined,
      () => nowMs,
    ),
    mintRequestId: () => 'r',
    hold: (work) => void work.then(() => watching.resolve(), watching.reject),
    onChange: async () => {
      if (store.head !== undefined && savedMs.at(-1) !== store.head.createdMs)
        savedMs.push(store.head.createdMs)
    },
  })
  files.watch()
  await watching.promise
  if (files.saved.error !== null) throw new SandwireError('internal', files.saved.error)
  return savedMs
}

test('saves the files of a started sandbox once they are quiet, although everything must be scanned', async () => {
  const [first = 0] = await watch([100], 30_000)
  expect(first).toBeLessThanOrEqual(FIRST_LOOK_MS + QUIET_MS + 500)
})

test('saves a change as soon when a scan of all folders is due', async () => {
  // The scan after the first save is due a minute later.
  const saved = await watch([100, 70_000], 100_000)
  expect(saved).toHaveLength(2)
  expect(saved[1]).toBeLessThanOrEqual(70_000 + QUIET_MS + 1_000)
})
