import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eventually } from '@sandwire/testing'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type RunningControl, startControl } from './support/control.ts'
import { type FakeAgent, FakeAgents } from './support/fake-agents.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'
import { type GitServer, openGitServer } from './support/git-server.ts'

const TOKEN = 'ghp-canary-000000000000'
const REPO = 'https://github.com/owner/one'
const sandboxes = new FakeSandboxes()
let agents = new FakeAgents()
let control: RunningControl
let server: GitServer
let github: ReturnType<typeof openGithub>

/** The part of GitHub's API that pull requests need. */
function openGithub() {
  const pulls: Record<string, unknown>[] = []
  const calls: { line: string; authorization: string | null }[] = []
  const state = { refusal: undefined as Response | undefined }
  const api = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const url = new URL(request.url)
      calls.push({
        line: `${request.method} ${url.pathname}`,
        authorization: request.headers.get('authorization'),
      })
      if (request.method === 'POST' && url.pathname === '/repos/owner/one/pulls') {
        if (state.refusal !== undefined) return state.refusal
        const body = (await request.json()) as Record<string, unknown>
        pulls.push({
          ...body,
          number: pulls.length + 1,
          html_url: `https://github.com/owner/one/pull/${pulls.length + 1}`,
        })
        return Response.json(pulls.at(-1), { status: 201 })
      }
      if (url.pathname === '/repos/owner/one/pulls')
        return Response.json(
          pulls.filter(({ head }) => url.searchParams.get('head') === `owner:${String(head)}`),
        )
      if (url.pathname === '/repos/owner/one') return Response.json({ default_branch: 'main' })
      if (url.pathname === '/repos/owner/one/git/ref/heads/deps/@types/node+1')
        return Response.json({ ref: 'refs/heads/deps/@types/node+1' })
      return Response.json({ message: 'Not Found' }, { status: 404 })
    },
  })
  return { api, pulls, calls, state, url: `http://127.0.0.1:${api.port}` }
}

beforeAll(async () => {
  server = openGitServer(['owner/one'], `x-access-token:${TOKEN}`)
  github = openGithub()
  sandboxes.intercept = (request, fake) => agents.handle(request, fake)
  control = await startControl({
    runner: sandboxes,
    config: {
      credentials: {
        git: [
          { host: 'github.com', url: server.url, secret: 'GIT_TOKEN' },
          { host: 'open.example', url: server.url },
          { host: 'git.example', url: server.url, secret: 'GIT_TOKEN' },
        ],
        githubApiUrl: github.url,
      },
    },
    bindings: { ANTHROPIC_API_KEY: 'sk-ant-test', GIT_TOKEN: TOKEN },
  })
  control.host.isolation = 'bubblewrap'
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  await github.api.stop(true)
})
beforeEach(() => {
  agents = new FakeAgents()
  github.state.refusal = undefined
})

/** A change of the repository, as sandboxd packs it. */
function makeChange(name: string): NonNullable<FakeAgent['pack']> {
  const folder = mkdtempSync(path.join(tmpdir(), 'publish-'))
  const git = (args: string[], input = ''): string => {
    const env = { ...process.env, GIT_INDEX_FILE: path.join(folder, 'index') }
    const cwd = server.git('owner/one', 'rev-parse', '--absolute-git-dir').trim()
    const done = Bun.spawnSync(['git', ...args], { cwd, env, stdin: Buffer.from(input) })
    if (done.exitCode !== 0) throw new Error(done.stderr.toString())
    return done.stdout.toString().trim()
  }
  try {
    const commit = git(['rev-parse', 'main'])
    writeFileSync(path.join(folder, 'file'), `${name}\n`)
    const blob = git(['hash-object', '-w', path.join(folder, 'file')])
    git(['read-tree', 'main'])
    git(['update-index', '--add', '--cacheinfo', `100644,${blob},${name}.txt`])
    const tree = git(['write-tree'])
    const hash = git(['pack-objects', '-q', '--revs', path.join(folder, 'p')], `${tree}\n^main\n`)
    return { bytes: new Uint8Array(readFileSync(path.join(folder, `p-${hash}.pack`))), commit, tree }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** The id of an ended run with a change. */
async function endedRun(fields: object = {}, name: string = crypto.randomUUID()): Promise<string> {
  agents.onStart = (agent) => {
    agent.pack = makeChange(name)
    agent.end()
  }
  const created = await control.fetch('/api/runs', {
    method: 'POST',
    json: { repo: REPO, task: 'x', ...fields },
  })
  const { id } = (await created.json()) as { id: string }
  await eventually(
    async () =>
      ((await (await control.fetch(`/api/runs/${id}`)).json()) as { state: string }).state === 'ended',
    { what: 'the run to end' },
  )
  return id
}

async function publish(run: string, body: object): Promise<{ status: number; code?: string; body: unknown }> {
  return post(`/api/runs/${run}/publish`, body)
}

async function post(path: string, body: object): Promise<{ status: number; code?: string; body: unknown }> {
  const response = await control.fetch(path, { method: 'POST', json: body })
  const value = (await response.json()) as { error?: { code: string; message: string } }
  return {
    status: response.status,
    body: value,
    ...(value.error === undefined ? {} : { code: value.error.code }),
  }
}

async function read(path: string): Promise<Record<string, unknown>> {
  return (await (await control.fetch(path)).json()) as Record<string, unknown>
}

/** The path of a conversation whose agent has finished a turn. */
async function restingConversation(fields: object = {}): Promise<string> {
  agents.onStart = (agent) => agent.rest()
  const created = await post('/api/conversations', fields)
  const path = `/api/conversations/${(created.body as { id: string }).id}`
  await post(`${path}/messages`, { text: 'Fix it' })
  await eventually(async () => (await read(path))['state'] === 'idle', {
    what: 'the agent to rest',
    timeoutMs: 20_000,
  })
  return path
}

test('a run is published as a commit on a new branch with a pull request, once', async () => {
  const run = await endedRun({ ref: 'deps/@types/node+1' }, 'made')
  const publication = { branch: 'agent/fix', title: 'Fix it', body: 'Because.', pullRequest: true }
  const first = await publish(run, publication)
  expect(first).toMatchObject({
    status: 200,
    body: { branch: 'agent/fix', pullRequest: { number: 1, url: 'https://github.com/owner/one/pull/1' } },
  })
  const { commit } = first.body as { commit: string }
  expect(server.git('owner/one', 'rev-parse', 'agent/fix').trim()).toBe(commit)
  expect(server.git('owner/one', 'log', '-1', '--format=%B', commit).trim()).toBe('Fix it\n\nBecause.')
  expect(server.git('owner/one', 'diff', '--name-status', 'main', commit)).toBe('A\tmade.txt\n')
  server.git('owner/one', 'fsck', '--strict')
  expect(github.pulls).toMatchObject([
    { title: 'Fix it', body: 'Because.', head: 'agent/fix', base: 'deps/@types/node+1' },
  ])
  expect(await publish(run, publication)).toEqual(first)
  expect(github.pulls).toHaveLength(1)
  expect(github.calls.every(({ authorization }) => authorization === `Bearer ${TOKEN}`)).toBeTrue()
  expect(JSON.stringify(first)).not.toContain(TOKEN)
  expect(await read(`/api/runs/${run}`)).toMatchObject({ published: first.body })
})

test('a branch that exists, or that the server refuses, is not changed', async () => {
  const run = await endedRun()
  const before = server.git('owner/one', 'rev-parse', 'main')
  expect(await publish(run, { branch: 'main', title: 'x' })).toMatchObject({ status: 409, code: 'conflict' })
  expect(server.git('owner/one', 'rev-parse', 'main')).toBe(before)
  expect(await publish(run, { branch: 'agent/fix/below', title: 'x' })).toMatchObject({
    status: 422,
    code: 'publish_refused',
  })
  github.state.refusal = Response.json(
    { message: 'Validation Failed', errors: [{ message: 'No commits' }] },
    { status: 422 },
  )
  const refused = await publish(run, { branch: 'agent/second', title: 'x', pullRequest: true })
  expect(refused).toMatchObject({ status: 422, code: 'publish_refused' })
  expect(JSON.stringify(refused.body)).toContain('Validation Failed: No commits')
  expect(server.refs('owner/one')).toContain('refs/heads/agent/second')
  expect(await read(`/api/runs/${run}`)).toMatchObject({
    published: { branch: 'agent/second', pullRequest: null },
  })
})

test('what cannot be published is refused with the reason', async () => {
  const run = await endedRun()
  for (const branch of ['', '-x', 'a..b', 'a b', 'refs/heads/\n'])
    expect(await publish(run, { branch, title: 'x' })).toMatchObject({ status: 400 })
  expect(await publish(run, { branch: 'b', title: 'two\nlines' })).toMatchObject({ status: 400 })
  const elsewhere = await endedRun({ repo: 'https://git.example/owner/one' })
  expect(await publish(elsewhere, { branch: 'b', title: 'x', pullRequest: true })).toMatchObject({
    code: 'bad_request',
  })
  expect(await publish(elsewhere, { branch: 'b', title: 'x' })).toMatchObject({ status: 200 })
  const open = await endedRun({ repo: 'https://open.example/owner/one' })
  expect(await publish(open, { branch: 'c', title: 'x' })).toMatchObject({ code: 'agent_not_configured' })
  agents.onStart = () => undefined
  const created = await control.fetch('/api/runs', { method: 'POST', json: { repo: REPO, task: 'x' } })
  const { id } = (await created.json()) as { id: string }
  expect(await publish(id, { branch: 'd', title: 'x' })).toMatchObject({ status: 409, code: 'conflict' })
  await control.fetch(`/api/runs/${id}/abort`, { method: 'POST' })
})

test('a conversation is published as a commit on a new branch with a pull request, and stays so', async () => {
  const path = await restingConversation({ repo: REPO, ref: 'deps/@types/node+1' })
  expect(await read(path)).toMatchObject({ published: null })
  agents.change = { remote: `${REPO}.git`, pack: makeChange('talked') }
  expect(await read(`${path}/publish`)).toEqual({
    repo: REPO,
    pullRequest: true,
    problem: null,
    files: ['made.txt'],
    withheld: [],
  })
  expect(agents.changeRefs).toEqual(['deps/@types/node+1'])
  const publication = { branch: 'agent/talk', title: 'Talk', pullRequest: true }
  const first = await post(`${path}/publish`, publication)
  expect(first).toMatchObject({ status: 200, body: { repo: REPO, branch: 'agent/talk' } })
  const { commit, pullRequest } = first.body as { commit: string; pullRequest: { number: number } }
  expect(server.git('owner/one', 'rev-parse', 'agent/talk').trim()).toBe(commit)
  expect(server.git('owner/one', 'diff', '--name-status', 'main', commit)).toBe('A\ttalked.txt\n')
  expect(github.pulls.at(-1)).toMatchObject({
    number: pullRequest.number,
    base: 'deps/@types/node+1',
    head: 'agent/talk',
  })
  expect(await post(`${path}/publish`, publication)).toEqual(first)
  expect(await read(path)).toMatchObject({ published: first.body })
  const { conversations } = await read('/api/conversations')
  expect(conversations).toContainEqual(expect.objectContaining({ published: first.body }))
  const { rows } = await read('/api/audit?action=conversation.publish')
  expect(rows).toMatchObject([{ outcome: 'allowed' }, { outcome: 'allowed' }])
})

test('a repository that the sandbox names is published to when the caller confirms it', async () => {
  const path = await restingConversation()
  const publication = { branch: 'agent/confirmed', title: 'x' }
  expect(await post(`${path}/publish`, publication)).toMatchObject({ status: 409, code: 'conflict' })
  agents.change = { remote: 'git@github.com:owner/one.git', pack: makeChange('confirmed') }
  const repo = 'https://github.com/owner/one.git'
  expect(await read(`${path}/publish`)).toMatchObject({ repo, problem: null })
  for (const wrong of [{}, { repo: 'https://github.com/owner/other' }])
    expect(await post(`${path}/publish`, { ...publication, ...wrong })).toMatchObject({ code: 'conflict' })
  expect(server.refs('owner/one')).not.toContain('refs/heads/agent/confirmed')
  expect(await post(`${path}/publish`, { ...publication, repo })).toMatchObject({
    status: 200,
    body: { branch: 'agent/confirmed', pullRequest: null },
  })
})

test('a conversation is not published elsewhere, without changes, or while its agent works', async () => {
  const path = await restingConversation({ repo: REPO })
  const publication = { branch: 'agent/refused', title: 'x' }
  for (const remote of ['https://github.com/owner/other', '/home/user/one.git', 'https://x']) {
    agents.change = { remote, pack: makeChange('refused') }
    expect(await post(`${path}/publish`, publication)).toMatchObject({ status: 409, code: 'conflict' })
  }
  agents.change = { remote: REPO, pack: undefined }
  expect(await read(`${path}/publish`)).toMatchObject({
    problem: 'Cannot publish the changes: nothing was changed',
  })
  expect(await post(`${path}/publish`, publication)).toMatchObject({ code: 'conflict' })
  agents.change = { remote: REPO, pack: makeChange('working') }
  await post(`${path}/messages`, { text: 'Go on' })
  expect(await post(`${path}/publish`, publication)).toMatchObject({ code: 'conflict' })
  expect(server.refs('owner/one')).not.toContain('refs/heads/agent/refused')
})
