import { createHmac } from 'node:crypto'
import { cpus } from 'node:os'
import { join } from 'node:path'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openParts } from '../competitors.ts'
import { createSandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { attachStream } from '../peers/sandwire.ts'
import type { Stream } from '../peers/stream.ts'
import { below, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

const SANDBOX = 'bench'
const SECRET = 'a secret that only the bench knows, long enough'
/** Connections of a flood, each with one request in progress. */
const CONNECTIONS = 64
/** More than workerd has descriptors for on most machines. */
const IDLE_CONNECTIONS = 15_000
/** Rows of the audit that the flood reads. */
const AUDIT_ROWS = 1_000
/** Time for a flood to begin, and duration of a measurement. */
const BEGIN_MS = 1_000
const MEASURE_MS = 3_000
/** Between two requests or keystrokes. */
const PAUSE_MS = 20

type Credential = 'account' | 'invalid' | 'none'

interface Flood {
  readonly path: string
  readonly credential: Credential
  readonly connections?: number
}

/** An empty path: connections without a request. */
const FLOODS = {
  'no flood': { path: '/', credential: 'none', connections: 0 },
  'OpenAPI document': { path: '/api/openapi.json', credential: 'account' },
  'small requests': { path: '/api/whoami', credential: 'account' },
  logs: { path: `/logs/${SANDBOX}?bytes=1000000`, credential: 'account' },
  audit: { path: `/api/audit?limit=${AUDIT_ROWS}`, credential: 'account' },
  'filtered audit': { path: '/api/audit?limit=1000&action=grant.create', credential: 'account' },
  'anonymous readyz': { path: '/readyz', credential: 'none' },
  'anonymous page': { path: '/', credential: 'none' },
  'invalid tokens': { path: '/api/whoami', credential: 'invalid' },
  'idle connections': { path: '', credential: 'none', connections: IDLE_CONNECTIONS },
} as const satisfies Record<string, Flood>

type FloodName = keyof typeof FLOODS
const NAMES = Object.keys(FLOODS) as FloodName[]

/** A service token for an account of this name. */
function mintToken(subject: string): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const exp = Math.floor(Date.now() / 1000) + 6 * 3600
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ sub: subject, exp })}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** A host with the flooding account, which has a sandbox and audit rows, and the local account, which is measured. */
interface Scene {
  readonly host: RunningHost
  readonly token: string
}

async function openScene(host: RunningHost): Promise<Scene> {
  const token = mintToken('flooder')
  const send = async (method: string, path: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await host.fetch(path, { method, headers, body: JSON.stringify(body) })
    if (!response.ok) throw new Error(`Cannot ${method} ${path}: ${response.status} ${await response.text()}`)
  }
  await send('POST', '/api/sandboxes', { name: SANDBOX })
  const change = (): Promise<void> => send('PUT', `/api/sandboxes/${SANDBOX}/env`, { env: {} })
  for (let rows = 0; rows < AUDIT_ROWS; rows += 10) await Promise.all(Array.from({ length: 10 }, change))
  await createSandbox(host, SANDBOX)
  return { host, token }
}

/** Floods from a process on one core until disposed. */
function flood({ host, token }: Scene, { path, credential, connections = CONNECTIONS }: Flood): Disposable {
  if (connections === 0) return { [Symbol.dispose]: () => undefined }
  const authorization = {
    account: [`Authorization: Bearer ${token}`],
    invalid: [`Authorization: Bearer ${token}x`],
    none: [],
  }[credential]
  const program = join(import.meta.dir, '../programs/request-flood.ts')
  const pinned = ['taskset', '-c', String(cpus().length - 1), process.execPath, program]
  const child = Bun.spawn(
    [
      ...pinned,
      String(host.port),
      String(connections),
      path,
      `Host: 127.0.0.1:${host.port}`,
      ...authorization,
    ],
    { stdout: 'ignore', stderr: 'inherit' },
  )
  return { [Symbol.dispose]: () => child.kill('SIGKILL') }
}

/** Times one thing after the other for as long as a measurement takes. */
async function timeEach(run: () => Promise<void>): Promise<number[]> {
  const times: number[] = []
  const untilMs = performance.now() + MEASURE_MS
  while (performance.now() < untilMs) {
    const startMs = performance.now()
    await run()
    times.push(performance.now() - startMs)
    await Bun.sleep(PAUSE_MS)
  }
  return times
}

async function request({ host }: Scene): Promise<void> {
  const response = await host.fetch('/api/whoami')
  await response.text()
  if (response.status !== 200) throw new Error(`A small request got ${response.status}`)
}

async function typeKey(stream: Stream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  stream.onData = () => resolve()
  stream.write(new Uint8Array([0x78]))
  await promise
}

type Part = `${FloodName}, p${50 | 90}`
const PARTS = NAMES.flatMap((name): Part[] => [`${name}, p50`, `${name}, p90`])

async function measureFloods(scene: Scene, run: () => Promise<void>): Promise<Record<Part, number>> {
  const figures: [Part, number][] = []
  for (const name of NAMES) {
    using _ = flood(scene, FLOODS[name])
    await Bun.sleep(BEGIN_MS)
    const times = await timeEach(run)
    figures.push([`${name}, p50`, quantile(times, 0.5)], [`${name}, p90`, quantile(times, 0.9)])
  }
  return Object.fromEntries(figures) as Record<Part, number>
}

function openFloods(open: (scene: Scene) => Promise<() => Promise<void>>): Row['open'] {
  return async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: 'no flood, p50', absent: problem }]
    return openHost(
      async (host) => {
        const scene = await openScene(host)
        const run = await open(scene)
        return openParts({ parts: PARTS, measure: () => measureFloods(scene, run), close: host.stop })
      },
      { env: { JWT_SECRET: SECRET } },
    )
  }
}

const TARGETS = NAMES.map((name) => below(`${name}, p90`, 100, 'ms'))

export const floodRequest: Row = {
  id: 'flood-request',
  title: 'small request during a flood of another account or of strangers',
  unit: 'ms',
  digits: 1,
  about:
    '`GET /api/whoami` every 20 ms while a process on one core floods control: 64 connections, each with a request.',
  targets: TARGETS,
  open: openFloods(async (scene) => () => request(scene)),
}

export const floodEcho: Row = {
  id: 'flood-echo',
  title: 'echo during a flood of another account or of strangers',
  unit: 'ms',
  digits: 1,
  about: 'One byte through `cat` and back every 20 ms, through control, during the same floods.',
  targets: TARGETS,
  open: openFloods(async ({ host }) => {
    const stream = await attachStream({ ...host, sandbox: SANDBOX }, { argv: ['cat'], mode: 'pipe' })
    return () => typeKey(stream)
  }),
}
