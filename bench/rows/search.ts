import { readShell } from '../../test/e2e/support/attached.ts'
import { describeManyFiles, packManyFiles } from '../../test/e2e/support/many-files.ts'
import {
  type ControlledPlace,
  expectGood,
  findIsolationProblem,
  openControlledFiles,
} from '../peers/workspace.ts'
import type { Row } from '../row.ts'

const MANY = describeManyFiles(38)

const OURS = 'sandwire through control'
const RIPGREP = 'rg in the sandbox'
/** Allowed overhead besides ripgrep: two hops, a process, and the response. */
const FACTOR = 1.5
const EXTRA_MS = 20

/** Time of plain ripgrep, measured inside the sandbox, with the same processors as our search. */
async function measureRipgrep({ host, sandbox }: ControlledPlace): Promise<number> {
  const script = `s=$(date +%s%N); rg -n needle . > /dev/null; e=$(date +%s%N); echo $((e - s))`
  const server = {
    port: host.port,
    headers: host.headers,
    sandbox,
    fetch: host.fetch,
    stop: host.stop,
    socketUrl: (path: string) => `ws://127.0.0.1:${host.port}${path}`,
  }
  return Number(await readShell(server, script)) / 1e6
}

async function measureSearch(place: ControlledPlace): Promise<number> {
  const startMs = performance.now()
  const text = await (await expectGood(place.fetch('search?q=needle'))).text()
  const ms = performance.now() - startMs
  if (!text.includes(MANY.needle.path)) throw new Error('The needle was not found')
  return ms
}

export const search: Row = {
  id: 'search',
  title: `content search in ${MANY.files.toLocaleString('en')} files`,
  unit: 'ms',
  about: 'One match in 50,000 small files, from the request to the last byte; `rg` timed where it runs.',
  targets: [
    {
      text: `${OURS} ≤ ${FACTOR} × ${RIPGREP} + ${EXTRA_MS} ms`,
      isMet: (medianOf) => {
        const [own, other] = [medianOf(OURS), medianOf(RIPGREP)]
        return own === undefined || other === undefined ? undefined : own <= other * FACTOR + EXTRA_MS
      },
    },
  ],
  open: async () => {
    const problem = findIsolationProblem()
    if (problem !== undefined) return [{ name: OURS, absent: problem }]
    const place = await openControlledFiles()
    await expectGood(place.fetch('archive?path=.', { method: 'PUT', body: packManyFiles(MANY) }))
    return [
      {
        name: RIPGREP,
        side: 'control',
        measure: () => measureRipgrep(place),
        [Symbol.asyncDispose]: async () => {},
      },
      {
        name: OURS,
        side: 'ours',
        measure: () => measureSearch(place),
        [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
      },
    ]
  },
}
