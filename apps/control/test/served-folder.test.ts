import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RunningControl, startControl, TOKEN } from './support/control.ts'
import { refusalOf, upgrade } from './support/handshake.ts'
import { codeIn, JWT_SECRET, Person } from './support/people.ts'
import { StandInSandboxes } from './support/stand-in-sandboxd.ts'

let sandboxes: StandInSandboxes
let control: RunningControl
beforeAll(async () => {
  sandboxes = new StandInSandboxes()
  control = await startControl({
    birthplace: sandboxes,
    config: { workspaceMode: 'local' },
    bindings: { JWT_SECRET },
  })
})
afterAll(async () => {
  await control[Symbol.asyncDispose]()
  await sandboxes[Symbol.asyncDispose]()
})

test('a served folder is nobody’s but the machine’s user’s, whoever signs in (threat T4)', async () => {
  const ann = await Person.named(control, 'ann')
  expect(codeIn(await ann.post('/api/sandboxes', { name: 'local' }))).toBe('403 forbidden')
  const attach = await upgrade(control, '/attach?sandbox=local&cmd=cat', { headers: ann.headers })
  expect(refusalOf(attach)).toBe('403 forbidden')
  expect(sandboxes.starts).toBe(0)
  const owner = new Person(control, TOKEN)
  expect((await owner.post('/api/sandboxes', { name: 'local' })).status).toBe(201)
})
