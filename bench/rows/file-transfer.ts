import { readResidentBytes } from '../../test/e2e/support/memory.ts'
import { openParts } from '../competitors.ts'
import {
  type ControlledPlace,
  expectGood,
  type FilesPlace,
  findIsolationProblem,
  openControlledFiles,
  openSandboxdFiles,
} from '../peers/workspace.ts'
import { type Absent, below, type Competitor, type Row, type Target } from '../row.ts'
import type { Scratch, Workload } from '../scratch.ts'

const BYTES = 1_000_000_000
const OURS = 'sandwire through control'
const LEAST_MB_PER_SECOND = 300
const MEBIBYTE = 1024 * 1024
/** Interval of memory samples during a transfer. */
const LOOK_MS = 20

const target: Target = {
  text: `${OURS} ≥ ${LEAST_MB_PER_SECOND} MB/s`,
  isMet: (medianOf) => {
    const own = medianOf(OURS)
    return own === undefined ? undefined : own >= LEAST_MB_PER_SECOND
  },
}

/** MB/s of reading a whole file. */
export async function download(place: FilesPlace, { bytes }: Workload): Promise<number> {
  const startMs = performance.now()
  const response = await expectGood(place.fetch('file?path=large'))
  let read = 0
  const body: ReadableStream<Uint8Array> | null = response.body
  for await (const chunk of body ?? []) read += chunk.byteLength
  if (read !== bytes) throw new Error(`Got ${read} bytes, expected ${bytes}`)
  return bytes / 1e6 / ((performance.now() - startMs) / 1000)
}

/** MB/s of sending a whole file, until it is on the disk. */
export async function upload(place: FilesPlace, { bytes, file }: Workload): Promise<number> {
  const startMs = performance.now()
  const response = await expectGood(place.fetch('file?path=large', { method: 'PUT', body: Bun.file(file) }))
  const body: unknown = await response.json()
  if (Reflect.get(Object(body), 'size') !== bytes) throw new Error('A byte is missing')
  return bytes / 1e6 / ((performance.now() - startMs) / 1000)
}

/** A server that only sends and receives a file. */
function openBare({ file }: Workload): FilesPlace {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    maxRequestBodySize: 2 * BYTES,
    fetch: async (request) => {
      if (request.method === 'GET') return new Response(Bun.file(file))
      let size = 0
      const body: ReadableStream<Uint8Array> | null = request.body
      for await (const chunk of body ?? []) size += chunk.byteLength
      return Response.json({ size })
    },
  })
  return {
    fetch: (_, init) => fetch(`http://127.0.0.1:${server.port}/`, init),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

async function openAll(
  scratch: Scratch,
  measure: (place: FilesPlace, workload: Workload) => Promise<number>,
): Promise<(Competitor | Absent)[]> {
  const workload = await scratch.workload(BYTES)
  const problem = findIsolationProblem()
  const competitor = async (name: string, place: FilesPlace): Promise<Competitor> => {
    // The file to download exists, and each upload replaces it, as in every round.
    await upload(place, workload)
    return {
      name,
      side: name.startsWith('sandwire') ? 'ours' : 'control',
      measure: () => measure(place, workload),
      [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
    }
  }
  return [
    await competitor('bare HTTP', openBare(workload)),
    await competitor('sandwire', await openSandboxdFiles()),
    problem === undefined
      ? await competitor(OURS, await openControlledFiles())
      : { name: OURS, absent: problem },
  ]
}

export const downloadFile: Row = {
  id: 'download',
  title: 'download of 1 GB',
  unit: 'MB/s',
  about: 'A file of 1 GB over loopback, from the request to its last byte; byte count checked.',
  targets: [target],
  open: ({ scratch }) => openAll(scratch, download),
}

export const uploadFile: Row = {
  id: 'upload',
  title: 'upload of 1 GB',
  unit: 'MB/s',
  about:
    'A file of 1 GB over loopback, until it has taken its place on the disk; `bare HTTP` writes nothing.',
  targets: [target],
  open: ({ scratch }) => openAll(scratch, upload),
}

/** The highest growth of a process during an action. */
export async function watchGrowth(
  pids: readonly number[],
  action: () => Promise<unknown>,
): Promise<number[]> {
  const before = pids.map(readResidentBytes)
  const highest = [...before]
  const look = (): void => {
    for (const [at, pid] of pids.entries()) highest[at] = Math.max(highest[at] ?? 0, readResidentBytes(pid))
  }
  const timer = setInterval(look, LOOK_MS)
  try {
    await action()
  } finally {
    clearInterval(timer)
  }
  look()
  return highest.map((bytes, at) => (bytes - (before[at] ?? 0)) / MEBIBYTE)
}

async function measureMemory(place: ControlledPlace, workload: Workload) {
  const bothWays = async (): Promise<void> => {
    await upload(place, workload)
    await download(place, workload)
  }
  const [workerd = 0, sandboxd = 0] = await watchGrowth([place.workerd, place.sandboxd], bothWays)
  return { workerd, sandboxd }
}

/** Allows for allocator buffers; a file of 1 GB in memory would exceed it. */
const MOST_MIB = 64

export const transferMemory: Row = {
  id: 'transfer-memory',
  title: 'growth while 1 GB goes each way',
  unit: 'MiB',
  digits: 1,
  about:
    'Highest growth of workerd and of sandboxd during an upload and a download of 1 GB, after one of each.',
  targets: [below('workerd', MOST_MIB, 'MiB'), below('sandboxd', MOST_MIB, 'MiB')],
  open: async ({ scratch }) => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'workerd', absent: problem }]
    const workload = await scratch.workload(BYTES)
    const place = await openControlledFiles()
    await measureMemory(place, workload)
    return openParts({
      parts: ['workerd', 'sandboxd'],
      measure: () => measureMemory(place, workload),
      close: async () => place[Symbol.asyncDispose](),
    })
  },
}
