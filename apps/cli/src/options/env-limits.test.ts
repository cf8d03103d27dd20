import { expect, test } from 'bun:test'
import { decodeClient, limits } from '@sandwire/protocol'
import { checkEnv } from './env-limits.ts'
import { Wrong } from './words.ts'

function manyOf(count: number, value = ''): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`V${at}`, value]))
}

/** A hello that is as long as one can be, with this environment. */
function longestHello(env: Record<string, string>): string {
  const most = Number.MAX_SAFE_INTEGER
  return JSON.stringify({
    type: 'hello',
    version: 1e3,
    identity: 'f'.repeat(32),
    attempt: most,
    resuming: false,
    received: most,
    window: limits.MAX_WINDOW_BYTES,
    cols: limits.MAX_CELLS,
    rows: limits.MAX_CELLS,
    role: 'collaborator',
    name: '"'.repeat(limits.MAX_NAME_CHARS),
    env,
  })
}

/** As long together as may be. */
function fullEnv(): Record<string, string> {
  const env: Record<string, string> = manyOf(4, 'x'.repeat(limits.MAX_ENV_CHARS - 300))
  const rest = limits.MAX_ENV_TOTAL_CHARS - JSON.stringify({ ...env, REST: '' }).length
  return { ...env, REST: 'x'.repeat(rest) }
}

test('[E4] as many and as long variables as a hello carries go along', () => {
  const most = {
    many: manyOf(limits.MAX_ENV_ENTRIES),
    long: { A: 'x'.repeat(limits.MAX_ENV_CHARS) },
    named: { ['N'.repeat(limits.MAX_ENV_NAME_CHARS)]: '' },
    together: fullEnv(),
  }
  for (const [what, env] of Object.entries(most)) {
    checkEnv(env)
    expect([what, decodeClient(longestHello(env))?.kind]).toEqual([what, 'control'])
  }
})

test.each([
  ['too many', manyOf(limits.MAX_ENV_ENTRIES + 1), '257 variables are too many: 256 at most go along'],
  [
    'one too long',
    { SHORT: '', LONG: 'x'.repeat(limits.MAX_ENV_CHARS + 1) },
    'Variable "LONG" is too long: it has 32769 characters, and 32768 at most go along',
  ],
  [
    'too long together',
    { ...fullEnv(), X: '' },
    'The variables are too long together: they have 130055 characters, and 130048 at most go along',
  ],
  // Each of them travels as six.
  [
    'too long together as they travel',
    { A: '\x01'.repeat(22_000) },
    'The variables are too long together: they have 132008 characters, and 130048 at most go along',
  ],
])('variables that are %s are refused with the limit and a hint', (_, env, message) => {
  const refuse = () => checkEnv(env)
  expect(refuse).toThrow(Wrong)
  expect(refuse).toThrow(message)
  try {
    refuse()
  } catch (error) {
    expect(error).toMatchObject({ hint: expect.stringMatching(/^[^\n]+$/) })
  }
})
