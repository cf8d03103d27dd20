import { describe, expect, test } from 'bun:test'
import { type RunningControl, startControl } from './support/control.ts'
import { JWT_SECRET, serviceToken } from './support/service-token.ts'
import { FakeSandboxes } from './support/fake-sandboxes.ts'

/** Bash expands this variable at startup, including commands in it. */
const HOSTILE = { BASH_ENV: '$(id)' }
const TERMINAL = { LANG: 'C.UTF-8', TZ: 'UTC' }
/** The same account with more and with fewer scopes. */
const OWNER = serviceToken('ada', ['connect', 'exec', 'admin'])
const NO_EXEC = serviceToken('ada', ['connect', 'admin'])

type Env = Readonly<Record<string, string>>

async function outcomeOf(response: Response): Promise<string> {
  if (response.ok) return String(response.status)
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  expect(error.message).not.toContain('$(id)')
  return `${response.status} ${error.code}`
}

/** The outcomes of creating a sandbox with an environment and of setting that of an existing one. */
async function tryEnv(control: RunningControl, token: string, env: Env): Promise<readonly string[]> {
  const headers = { authorization: `Bearer ${token}` }
  const name = `s-${crypto.randomUUID()}`
  const send = (method: string, path: string, json: unknown): Promise<Response> =>
    control.fetch(path, { method, json, headers })
  const made = await send('POST', '/api/sandboxes', { name, env, start: false })
  if (!made.ok) await send('POST', '/api/sandboxes', { name, start: false })
  const set = await send('PUT', `/api/sandboxes/${name}/env`, { env })
  return [await outcomeOf(made), await outcomeOf(set)]
}

describe('the environment of a sandbox, in which every template runs (threat T9)', () => {
  test('can be set only by callers who may run any command', async () => {
    await using places = new FakeSandboxes()
    await using control = await startControl({ runner: places, bindings: { JWT_SECRET } })
    expect(await tryEnv(control, OWNER, HOSTILE)).toEqual(['201', '200'])
    expect(await tryEnv(control, NO_EXEC, HOSTILE)).toEqual(['403 forbidden', '403 forbidden'])
    expect(await tryEnv(control, NO_EXEC, TERMINAL)).toEqual(['201', '200'])
  })

  test('cannot be set where only templates run', async () => {
    await using places = new FakeSandboxes()
    await using control = await startControl({
      runner: places,
      config: { commands: { free: 'nobody' } },
      bindings: { JWT_SECRET },
    })
    expect(await tryEnv(control, OWNER, HOSTILE)).toEqual(['403 forbidden', '403 forbidden'])
    expect(await tryEnv(control, OWNER, TERMINAL)).toEqual(['201', '200'])
  })
})
