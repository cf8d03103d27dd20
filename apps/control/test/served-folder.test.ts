import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, JWT_SECRET, ApiClient } from './support/api-client.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

let sandboxes: FakeSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new FakeSandboxes()
  control = await startControl({
    runner: sandboxes,
    config: { workspaceMode: 'local' },
    bindings: { JWT_SECRET },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

test('a served folder belongs to the user of the machine only, also when others sign in (threat T4)', async () => {
  const ann = await ApiClient.named(control, 'ann')
  expect(codeIn(await ann.post('/api/sandboxes', { name: 'local' }))).toBe('403 forbidden')
  const attach = await upgrade(control, '/attach?sandbox=local&cmd=cat', { headers: ann.headers })
  expect(refusalOf(attach)).toBe('403 forbidden')
  expect(sandboxes.starts).toBe(0)
  expect((await ann.get('/api/tree')).status).toBe(404)
  expect(sandboxes.starts).toBe(0)
})

test('the compat API serves the folder from the start, and again after a stop', async () => {
  const owner = new ApiClient(control, TOKEN)
  expect((await owner.get('/api/whoami')).body).toMatchObject({ firstSandbox: 'local' })
  sandboxes.files = () => Promise.resolve(Response.json({ entries: [], path: '.' }))
  expect((await owner.get('/api/tree')).status).toBe(200)
  expect((await owner.post('/api/sandboxes/local/stop', {})).status).toBe(200)
  // Clients that know sandboxes decide when one runs.
  expect(codeIn(await owner.get('/api/workspaces/local/tree'))).toBe('409 sandbox_stopped')
  expect((await owner.get('/api/tree')).status).toBe(200)
  expect((await owner.get('/api/workspaces/local/tree')).status).toBe(200)
})

test('a request for files creates no other sandbox', async () => {
  const owner = new ApiClient(control, TOKEN)
  expect((await owner.get('/api/tree?sandbox=other')).status).toBe(404)
})
