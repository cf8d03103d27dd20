import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { encodePath } from '@sandwire/protocol'
import { TarBuffer, type WritableEntry } from '@sandwire/tar'
import { type RunningHost, startHost } from './support/control.ts'
import { hostileArguments, JSON_PATHS, QUERY_PATHS } from './support/hostile/inputs.ts'
import { type HostileRequest, INPUT_ROUTES, type InputRoute } from './support/hostile/requests.ts'
import { HostileWorkspace, SECRET } from './support/hostile/workspace.ts'

const REQUEST_TIMEOUT_MS = 20_000
/** How much of a response is read: some never end. */
const MAX_READ_BYTES = 4 * 1024 * 1024
/** Requests of one route that change nothing and run at a time. */
const CONCURRENCY = 8

let host: RunningHost
let workspace: HostileWorkspace
let data: string
beforeAll(async () => {
  workspace = new HostileWorkspace()
  data = mkdtempSync('/tmp/hostile-data-')
  const settings = join(data, 'settings.json')
  writeFileSync(settings, JSON.stringify({ limits: { workspaceCostPerMinutePerUser: 0 } }))
  // Without isolation sandboxd can reach the folders beside the workspace: only path confinement protects them.
  host = await startHost({
    data: join(data, 'data'),
    args: ['--workspace', workspace.root],
    env: {
      SANDWIRE_ISOLATION: 'none',
      SANDWIRE_SETTINGS: settings,
      RIPGREP_CONFIG_PATH: join(workspace.root, '.ripgreprc'),
    },
  })
  const headers = { 'content-type': 'application/json' }
  const create = host.fetch('/api/sandboxes', { method: 'POST', headers, body: '{"name":"local"}' })
  expect((await create).status).toBe(201)
})
afterAll(async () => {
  await host.stop()
  workspace[Symbol.dispose]()
  rmSync(data, { recursive: true, force: true })
})

async function readStart(response: Response): Promise<string> {
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

function findResponseProblem(status: number, text: string): string | undefined {
  if (text.includes(SECRET)) return 'discloses a file outside the workspace'
  if (status < 400) return undefined
  const isWriteFailed = status === 500 && text.startsWith('{"detail":"Write failed: ')
  if ((status >= 500 || status === 429) && !isWriteFailed) return `status ${status} ${text.slice(0, 200)}`
  const { error, detail } = Object(JSON.parse(Buffer.from(text, 'latin1').toString()))
  const message: unknown = detail ?? Object(error).message
  const isPrintable = typeof message !== 'string' || !/[\p{C}\p{Zl}\p{Zp}]/u.test(message)
  return isPrintable ? undefined : `message ${JSON.stringify(message)}`
}

/** Sends a request and returns what is wrong with its response. */
async function findProblem({ method, path, body }: HostileRequest): Promise<string | undefined> {
  const headers: Record<string, string> =
    typeof body === 'string' && body.startsWith('{') ? { 'content-type': 'application/json' } : {}
  const init = { method, headers, signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS) }
  const outside = workspace.readOutside()
  const problem = await host
    .fetch(path, body === undefined ? init : { ...init, body })
    .then(async (response) => findResponseProblem(response.status, await readStart(response)))
    .catch((error: unknown) => `failed: ${String(error)}`)
  const found = problem ?? (workspace.readOutside() === outside ? undefined : 'changes files outside')
  if (found === undefined) return undefined
  return `${method} ${path.slice(0, 200)} ${String(body).slice(0, 200)}: ${found}`
}

function listRequests({ takes, query, json }: InputRoute): HostileRequest[] {
  if (takes === 'nothing') return query === undefined ? [] : [query('')]
  const names = takes === 'path' ? workspace.traps : hostileArguments(workspace.mark)
  const encoded = names.map((name) => encodePath(name) ?? '')
  const queries = takes === 'path' ? [...QUERY_PATHS, ...encoded] : encoded
  const texts = takes === 'path' ? [...JSON_PATHS, ...names] : names
  return query === undefined ? texts.flatMap((text) => json?.(text) ?? []) : queries.map(query)
}

/** Requests that change nothing run at once; others one by one, each against a restored workspace. */
async function findProblems(route: InputRoute): Promise<string[]> {
  const requests = listRequests(route)
  const isRead = requests.every(({ method }) => method === 'GET')
  const problems: (string | undefined)[] = []
  while (requests.length > 0) {
    workspace.restore()
    const batch = requests.splice(0, isRead ? CONCURRENCY : 1)
    problems.push(...(await Promise.all(batch.map(findProblem))))
  }
  return problems.filter((problem) => problem !== undefined)
}

test.each(INPUT_ROUTES.map((route) => [`${route.route} (${route.takes})`, route] as const))(
  '(threat T12) (threat T13) (threat T15) (threat T16) (threat T18) (threat T19) (threat T20) (threat T24) %s discloses and changes nothing outside',
  async (_, route) => {
    expect(await findProblems(route)).toEqual([])
    expect(workspace.findLeaks()).toEqual([])
  },
)

test('(threat T17) an archive writes nothing outside, neither by entry names nor through links', async () => {
  const archive = new TarBuffer()
  const facts = { sizeBytes: 1, mode: 0o6755, mtimeNs: '0' }
  const put = (entry: Partial<WritableEntry> & { readonly path: string }): void => {
    archive.entry({ kind: 'file', ...facts, ...entry })
    if (entry.kind === undefined) archive.content(Uint8Array.of(0x78))
  }
  for (const path of [
    '../outside/made',
    `${workspace.outside}/made`,
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
  workspace.restore()
  const outside = workspace.readOutside()
  const response = await host.fetch('/api/workspaces/local/archive?path=.', {
    method: 'PUT',
    body: archive.take(),
  })
  expect(response.status).toBe(200)
  const { entries, refused } = Object(await response.json())
  expect(refused.length).toBeGreaterThanOrEqual(8)
  expect(entries).toBeGreaterThan(0)
  expect(workspace.readOutside()).toBe(outside)
  expect(workspace.findLeaks()).toEqual([])
  expect(await (await host.fetch('/api/workspaces/local/file?path=fine')).text()).toBe('x')
})

test('every workspace route of the OpenAPI document is covered', async () => {
  const document = Object(await (await host.fetch('/api/openapi.json')).json())
  const routes = Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
    Object.keys(Object(methods)).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const isOne = /^[A-Z]+ \/api\/(workspaces\/|tree|file|search|git\/)/
  const tried = new Set(INPUT_ROUTES.map(({ route }) => route))
  expect(routes.filter((route) => isOne.test(route) && !tried.has(route))).toEqual([])
})
