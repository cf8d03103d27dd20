// Saves and restores a folder as sandboxd does, with a folder as the store. Commands are JSON lines on stdin:
// bun version-engine.ts ROOT STORE

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { readProcessMemory } from '@sandwire/testing'
import type { VersionThread } from '../../apps/sandboxd/src/versions/messages.ts'
import { pauseProcesses } from '../../apps/sandboxd/src/versions/pause-processes.ts'
import { VersionService } from '../../apps/sandboxd/src/versions/version-service.ts'
import { WorkerClient } from '../../apps/sandboxd/src/workspace/thread/worker-client.ts'

export type EngineCommand =
  /** `hinted`: scans the folders that inotify reported. `unknown`: as the first save. */
  { readonly verb: 'save'; readonly scan: 'unknown' | 'full' | 'hinted' } | { readonly verb: 'restore' }

export interface EngineResult {
  readonly cpuSeconds: number
  readonly wallSeconds: number
  /** How long processes were stopped. */
  readonly pauseMs: number
  readonly bytes: number
  /** Segments. */
  readonly puts: number
  readonly pssBytes: number
  /** Scanned all folders although it had hints. */
  readonly isChanged: boolean
}

interface Saved {
  readonly manifests: readonly string[]
  readonly segments: readonly string[]
  readonly trailers: Readonly<Record<string, number>>
  readonly save: string
}

const [root = '', store = ''] = process.argv.slice(2)
const INDEX = join(store, 'index.json')
mkdirSync(store, { recursive: true })

const paused = new SharedArrayBuffer(4)
const thread = new WorkerClient<VersionThread>({
  createWorker: () =>
    new Worker(new URL('../../apps/sandboxd/src/versions/version-worker.ts', import.meta.url).href),
  setUp: { roots: [{ name: 'workspace', path: root }], user: undefined, paused },
  task: 'save files',
})
let pausedMs = 0
const service = new VersionService({
  thread,
  paused: new Int32Array(paused),
  pause: () => {
    const startMs = performance.now()
    const resume = pauseProcesses()
    return () => {
      resume()
      pausedMs += performance.now() - startMs
    }
  },
  wallClock: Date.now,
  sleep: (ms) => Bun.sleep(ms),
  later: (ms, action) => {
    const timer = setTimeout(action, ms)
    return () => clearTimeout(timer)
  },
})

let last: Saved | undefined
let count = 0

async function save(
  scan: 'unknown' | 'full' | 'hinted',
): Promise<Pick<EngineResult, 'bytes' | 'puts' | 'isChanged'>> {
  count += 1
  const id = (Date.now() * 1000 + count).toString(16).padStart(28, '0')
  const parent = scan === 'unknown' ? undefined : last?.save
  await service.begin({
    save: id,
    parent,
    kind: 'checkpoint',
    record: '{}',
    isBase: false,
    isRecorded: false,
    isFullScan: scan === 'full',
    replaced: [],
  })
  const trailers: Record<string, number> = parent === undefined ? {} : { ...last?.trailers }
  let bytes = 0
  let puts = 0
  for (; ; puts += 1) {
    const segmentId = id + puts.toString(16).padStart(4, '0')
    const segment = await service.segment(segmentId)
    if (segment === undefined) break
    writeFileSync(join(store, segmentId), segment.bytes)
    trailers[segmentId] = segment.trailerBytes
    bytes += segment.bytes.byteLength
  }
  const { isChanged, isBase, segments } = await service.summary(id)
  if (isChanged) {
    await service.commit(id)
    const manifest = id + (puts - 1).toString(16).padStart(4, '0')
    const manifests = isBase ? [manifest] : [...(last?.manifests ?? []), manifest]
    last = { manifests, segments, trailers, save: id }
    writeFileSync(INDEX, JSON.stringify(last))
  }
  return { bytes, puts, isChanged }
}

async function restore(): Promise<Pick<EngineResult, 'bytes' | 'puts' | 'isChanged'>> {
  const saved = JSON.parse(readFileSync(INDEX, 'utf8')) as Saved
  const ids = [...new Set([...saved.manifests, ...saved.segments])]
  const ends = ids.map((id) => {
    const bytes = readFileSync(join(store, id))
    const end = new Uint8Array(bytes.subarray(bytes.byteLength - (saved.trailers[id] ?? 0)))
    return { id, sizeBytes: bytes.byteLength, end }
  })
  let bytes = 0
  const needed = await service.beginRestore({ ends, manifestCount: saved.manifests.length }, undefined)
  for (const id of needed) {
    const segment = await Bun.file(join(store, id)).bytes()
    bytes += segment.byteLength
    await service.addSegment(id, segment)
  }
  await service.finishRestore(saved.save)
  return { bytes, puts: needed.length, isChanged: true }
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as EngineCommand
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  pausedMs = 0
  const facts = command.verb === 'save' ? await save(command.scan) : await restore()
  const { user, system } = process.cpuUsage(cpu)
  const result: EngineResult = {
    ...facts,
    cpuSeconds: (user + system) / 1e6,
    wallSeconds: (performance.now() - startMs) / 1000,
    pauseMs: pausedMs,
    pssBytes: readProcessMemory(process.pid).pssBytes,
  }
  console.log(JSON.stringify(result))
}
process.exit()
