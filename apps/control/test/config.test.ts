import { describe, expect, test } from 'bun:test'
import { decodeConfig } from '../src/config.ts'

const GOOD = {
  mode: 'open',
  publicOrigins: [],
  hosts: ['h'],
  sleepAfterMs: 1e3,
  alarmMs: 50,
  maxSandboxes: 1,
  provider: 'host',
  workspaceMode: 'sandboxes',
}

function problemOf(changes: object): string {
  try {
    decodeConfig(JSON.stringify({ ...GOOD, ...changes }))
    return ''
  } catch (error) {
    return error instanceof Error ? error.message : ''
  }
}

describe('decodeConfig', () => {
  test.each<[object, string]>([
    [
      { limits: { sessionsPerSandbox: 0 } },
      'limits.sessionsPerSandbox: expected a whole number from 1 to 10000',
    ],
    [
      { limits: { sessionsPerSandbox: '5' } },
      'limits.sessionsPerSandbox: expected a whole number from 1 to 10000',
    ],
    [
      { limits: { outputBytesPerSecond: -1 } },
      'limits.outputBytesPerSecond: expected a whole number from 0 to 1099511627776',
    ],
    [{ limits: { sesionsPerSandbox: 1 } }, 'limits.sesionsPerSandbox: unknown'],
    [{ sessions: { idleSeconds: -1 } }, 'sessions.idleSeconds: expected a whole number from 0 to 31536000'],
    [
      { sessions: { ptyHeartbeatSeconds: 1 } },
      'sessions.ptyHeartbeatSeconds: expected a whole number from 5 to 3600',
    ],
    [{ sessions: { keepSeconds: 1 } }, 'sessions.keepSeconds: unknown'],
    [{ sessionTokenMinutes: 5 }, 'sessionTokenMinutes: expected a whole number from 15 to 60'],
    [{ alarmMs: 1.5 }, 'alarmMs: expected a whole number from 50 to 60000'],
    [{ tokenInUrl: 'yes' }, 'tokenInUrl: expected true or false'],
    [{ tokenInURL: true }, 'tokenInURL: unknown'],
    [{ mode: 'closed' }, 'mode: expected local or open'],
    [
      { publicOrigins: ['https://a/'] },
      'publicOrigins.0: expected an origin, such as https://sandwire.example',
    ],
    [
      { embedOrigins: ['https://a.example', 'https://*.example'] },
      'embedOrigins.1: expected one origin, without wildcards',
    ],
    [{ embedOrigins: ['http://a.example'] }, 'embedOrigins.0: expected https, unless it is loopback'],
  ])('names the valid values for %j', (changes, why) => {
    expect(problemOf(changes)).toBe(`Invalid settings: ${why}`)
  })

  test('reports all problems at once', () => {
    const problem = problemOf({
      limits: { sessionsPerSandbox: 0, surprise: 1 },
      sessionTokenMinutes: 5,
      more: 1,
    })
    for (const key of ['limits.sessionsPerSandbox', 'limits.surprise', 'sessionTokenMinutes', 'more'])
      expect(problem).toContain(`${key}: `)
  })

  test('accepts a valid configuration', () => {
    expect(problemOf({})).toBe('')
  })
})
