import { expect, test } from 'bun:test'
import { DEFAULT_SANDBOX_LIMITS, type StartSpec } from '@sandwire/internal-api'
import { startupEnv } from '../src/providers/container/startup-env.ts'

/** Maximum bytes of a variable and its name in Linux. */
const MAX_VARIABLE_BYTES = 128 * 1024 - 1

const SPEC: StartSpec = {
  id: '0'.repeat(32),
  name: 'dev',
  publicKey: 'A'.repeat(43),
  network: { policy: 'none', allow: [] },
  limits: DEFAULT_SANDBOX_LIMITS,
  env: {},
}

test('an environment larger than one variable is split over several, in order', () => {
  const env = Object.fromEntries(
    Array.from({ length: 20 }, (_, index) => [`V${index}`, 'ä€😀"\n'.repeat(2_000)]),
  )
  const {
    SANDWIRE_SANDBOX: _sandbox,
    SANDWIRE_PUBLIC_KEY: _key,
    ...parts
  } = startupEnv({ ...SPEC, env }, { isIntercepted: false, savesFiles: false })
  const names = Object.keys(parts)
  expect(names.length).toBeGreaterThan(2)
  expect(names).toEqual(names.map((_, index) => (index === 0 ? 'SANDWIRE_ENV' : `SANDWIRE_ENV_${index}`)))
  for (const [name, value] of Object.entries(parts))
    expect(Buffer.byteLength(`${name}=${value}`)).toBeLessThanOrEqual(MAX_VARIABLE_BYTES)
  expect(JSON.parse(Object.values(parts).join(''))).toEqual(env)
})
