import type { RunningHost } from '../../test/e2e/support/control.ts'
import { openParts } from '../competitors.ts'
import { ATTACKED_ENV, Attacker, type Flood, sendSmallRequest, timeEach, typeKey } from '../peers/attacker.ts'
import { createSandbox, findIsolationProblem, openHost } from '../peers/control-plane.ts'
import { attachStream } from '../peers/sandwire.ts'
import { below, type Row } from '../row.ts'
import { quantile } from '../statistics.ts'

const SANDBOX = 'bench'
/** More than workerd has descriptors for on most machines. */
const IDLE_CONNECTIONS = 15_000
/** Rows of the audit that the flood reads. */
const AUDIT_ROWS = 1_000
/** Makes a version with 20,000 files. */
const FILES = 'for d in $(seq 100); do mkdir -p d$d; for f in $(seq 200); do echo $d > d$d/f$f; done; done'
/** Time for a flood to begin, and duration of a measurement. */
const BEGIN_MS = 1_000
const MEASURE_MS = 3_000

const FLOODS = {
  'no flood': { path: '/', credential: 'none', connections: 0 },
  'OpenAPI document': { path: '/api/openapi.json', credential: 'account' },
  'small requests': { path: '/api/whoami', credential: 'account' },
  logs: { path: `/logs/${SANDBOX}?bytes=1000000`, credential: 'account' },
  audit: { path: `/api/audit?limit=${AUDIT_ROWS}`, credential: 'account' },
  'filtered audit': { path: '/api/audit?limit=1000&action=grant.create', credential: 'account' },
  'saved files': { path: `/files/${SANDBOX}/workspace`, credential: 'account' },
  'compared versions': {
    path: `/api/sandboxes/${SANDBOX}/checkpoints/one/diff?to=two`,
    credential: 'account',
  },
  'anonymous readyz': { path: '/readyz', credential: 'none' },
  'anonymous page': { path: '/', credential: 'none' },
  'invalid tokens': { path: '/api/whoami', credential: 'invalid' },
  'idle connections': { path: '', credential: 'none', connections: IDLE_CONNECTIONS },
} as const satisfies Record<string, Flood>

type FloodName = keyof typeof FLOODS
const NAMES = Object.keys(FLOODS) as FloodName[]

/** A host with the flooding account, which has a sandbox and audit rows, and the local account, which is measured. */
interface Scene {
  readonly host: RunningHost
  readonly attacker: Attacker
}

async function openScene(host: RunningHost): Promise<Scene> {
  const attacker = new Attacker(host)
  await attacker.send('POST', '/api/sandboxes', { name: SANDBOX })
  const change = (): Promise<void> => attacker.send('PUT', `/api/sandboxes/${SANDBOX}/env`, { env: {} })
  for (let rows = 0; rows < AUDIT_ROWS; rows += 10) await Promise.all(Array.from({ length: 10 }, change))
  const exec = (script: string): Promise<void> =>
    attacker.send('POST', `/api/sandboxes/${SANDBOX}/exec`, {
      cmd: 'sh',
      args: ['-c', script],
      timeoutSeconds: 60,
    })
  const keep = (name: string): Promise<void> =>
    attacker.send('POST', `/api/sandboxes/${SANDBOX}/checkpoints`, { name })
  await exec(FILES)
  await keep('one')
  await exec('touch d*/f1')
  await keep('two')
  await createSandbox(host, SANDBOX)
  return { host, attacker }
}

type Part = `${FloodName}, p${50 | 90}`
const PARTS = NAMES.flatMap((name): Part[] => [`${name}, p50`, `${name}, p90`])

async function measureFloods(scene: Scene, run: () => Promise<void>): Promise<Record<Part, number>> {
  const figures: [Part, number][] = []
  for (const name of NAMES) {
    using _ = scene.attacker.flood(FLOODS[name])
    await Bun.sleep(BEGIN_MS)
    const times = await timeEach(run, MEASURE_MS)
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
      { env: ATTACKED_ENV },
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
  open: openFloods(
    async ({ host }) =>
      () =>
        sendSmallRequest(host),
  ),
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
