import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodePath } from '@sandwire/protocol'
import { TarBuffer, type WritableEntry } from '@sandwire/tar'
import { type RunningHost, startHost } from './support/control.ts'
import { JSON_PATHS, QUERY_PATHS, words } from './support/hostile/inputs.ts'
import { HostileScene, SECRET } from './support/hostile/scene.ts'
import { type Ask, type Verb, VERBS } from './support/hostile/verbs.ts'

setDefaultTimeout(120_000)
/** Nothing here is large or far. */
const LATE_MS = 20_000
/** Beginning of an answer that is looked at: some never end. */
const MAX_READ_BYTES = 4 * 1024 * 1024

let host: RunningHost
let scene: HostileScene
let data: string
beforeAll(async () => {
  scene = new HostileScene()
  data = mkdtempSync('/tmp/hostile-data-')
  const settings = join(data, 'settings.json')
  writeFileSync(settings, JSON.stringify({ limits: { workspaceCostPerMinutePerUser: 0 } }))
  // Without isolation what is beside the workspace is there: nothing but the paths' own rules keeps anybody from it.
  host = await startHost({
    data: join(data, 'data'),
    args: ['--workspace', scene.root],
    env: {
      SANDWIRE_ISOLATION: 'none',
      SANDWIRE_SETTINGS: settings,
      RIPGREP_CONFIG_PATH: join(scene.root, '.ripgreprc'),
    },
  })
  const headers = { 'content-type': 'application/json' }
  const create = host.fetch('/api/sandboxes', { method: 'POST', headers, body: '{"name":"local"}' })
  expect((await create).status).toBe(201)
})
afterAll(async () => {
  await host.stop()
  scene[Symbol.dispose]()
  rmSync(data, { recursive: true, force: true })
})

async function readSome(response: Response): Promise<string> {
  if ((response.headers.get('content-type') ?? '').startsWith('text/event-stream')) {
    await response.body?.cancel()
    return ''
  }
  let text = ''
  const body: ReadableStream<Uint8Array> | null = response.body
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString('latin1')
    if (text.length > MAX_READ_BYTES) break
  }
  return text
}

/** What is wrong with an answer. */
function judge(status: number, text: string): string | undefined {
  if (text.includes(SECRET)) return 'tells what is outside'
  if (status < 400) return undefined
  const isWriteFailed = status === 500 && text.startsWith('{"detail":"Write failed: ')
  if ((status >= 500 || status === 429) && !isWriteFailed) return `answers ${status} ${text.slice(0, 200)}`
  const { error, detail } = Object(JSON.parse(Buffer.from(text, 'latin1').toString()))
  const message: unknown = detail ?? Object(error).message
  const isPrintable = typeof message !== 'string' || !/[\p{C}\p{Zl}\p{Zp}]/u.test(message)
  return isPrintable ? undefined : `says ${JSON.stringify(message)}`
}

/** What goes wrong when something is asked: nothing may. */
async function tryOut(ask: Ask): Promise<string | undefined> {
  const headers: Record<string, string> =
    typeof ask.body === 'string' && ask.body.startsWith('{') ? { 'content-type': 'application/json' } : {}
  const outside = scene.lookOutside()
  const { method, path, body } = ask
  const init = { method, headers, signal: AbortSignal.timeout(LATE_MS) }
  const response = await host.fetch(path, body === undefined ? init : { ...init, body })
  const fault = judge(response.status, await readSome(response))
  if (fault !== undefined) return fault
  return scene.lookOutside() === outside ? undefined : 'changes what is outside'
}

function asksOf({ takes, query, json }: Verb): Ask[] {
  if (takes === 'nothing') return query === undefined ? [] : [query('')]
  const names = takes === 'path' ? scene.traps : words(scene.mark)
  const encoded = names.map((name) => encodePath(name) ?? '')
  const queries = takes === 'path' ? [...QUERY_PATHS, ...encoded] : encoded
  const texts = takes === 'path' ? [...JSON_PATHS, ...names] : names
  return query === undefined ? texts.flatMap((text) => json?.(text) ?? []) : queries.map(query)
}

test.each(VERBS.map((verb) => [`${verb.route} (${verb.takes})`, verb] as const))(
  '(threat T12) (threat T13) (threat T15) (threat T16) (threat T18) (threat T19) (threat T20) (threat T24) %s tells and changes nothing outside',
  async (_, verb) => {
    const faults: string[] = []
    for (const ask of asksOf(verb)) {
      scene.replant()
      const fault = await tryOut(ask).catch((error: unknown) => `fails: ${String(error)}`)
      if (fault !== undefined)
        faults.push(`${ask.method} ${ask.path.slice(0, 200)} ${String(ask.body).slice(0, 200)}: ${fault}`)
    }
    expect(faults).toEqual([])
    expect(scene.findLeaks()).toEqual([])
  },
)

test('(threat T17) archives put nothing outside, neither by their names nor through links', async () => {
  const archive = new TarBuffer()
  const facts = { sizeBytes: 1, mode: 0o6755, mtimeNs: '0' }
  const put = (entry: Partial<WritableEntry> & { readonly path: string }): void => {
    archive.entry({ kind: 'file', ...facts, ...entry })
    if (entry.kind === undefined) archive.content(Uint8Array.of(0x78))
  }
  for (const path of [
    '../outside/made',
    `${scene.outside}/made`,
    'a/../../outside/secret',
    'out/made',
    'up/made',
  ])
    put({ path })
  put({ path: 'l', kind: 'link', target: '../outside' })
  put({ path: 'l/made' })
  put({ path: 'h', kind: 'hard-link', target: '../outside/secret' })
  put({ path: 'h2', kind: 'hard-link', target: 'file' })
  put({ path: 'fine' })
  archive.end()
  scene.replant()
  const outside = scene.lookOutside()
  const response = await host.fetch('/api/workspaces/local/archive?path=.', {
    method: 'PUT',
    body: archive.take(),
  })
  expect(response.status).toBe(200)
  const { entries, refused } = Object(await response.json())
  expect(refused.length).toBeGreaterThanOrEqual(8)
  expect(entries).toBeGreaterThan(0)
  expect(scene.lookOutside()).toBe(outside)
  expect(scene.findLeaks()).toEqual([])
  expect(await (await host.fetch('/api/workspaces/local/file?path=fine')).text()).toBe('x')
})

test('every way into a workspace was tried', async () => {
  const document = Object(await (await host.fetch('/api/openapi.json')).json())
  const routes = Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
    Object.keys(Object(methods)).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const isOne = /^[A-Z]+ \/api\/(workspaces\/|tree|file|search|git\/)/
  const tried = new Set(VERBS.map(({ route }) => route))
  expect(routes.filter((route) => isOne.test(route) && !tried.has(route))).toEqual([])
})
