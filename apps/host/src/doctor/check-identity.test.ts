import { describe, expect, test } from 'bun:test'
import { issuerFromPreset } from '@sandwire/operator-settings'
import type { Configuration } from '../configuration.ts'
import { checkIdentity, type IdentityProbes } from './check-identity.ts'

const NOW_MS = Date.parse('2026-01-01T00:00:00Z')
const CONFIGURATION: Configuration = {
  dataFolder: '/data',
  port: 8787,
  addresses: ['0.0.0.0'],
  mode: 'open',
  publicOrigin: 'https://sandwire.example',
  issuers: [issuerFromPreset('auth0', { domain: 'id.example', audience: 'a', clientId: 'c' })],
  secrets: {},
  credentials: {},
  upstreamUrls: [],
  passed: {},
  disk: { overcommit: 4, bytesPerSecond: 0 },
  connections: {},
  backupHours: 0,
}

function probes(
  answer: () => Response,
  isKnown = true,
): IdentityProbes & { readonly stopRequested: string[] } {
  const stopRequested: string[] = []
  return {
    stopRequested,
    fetchUrl: async (url) => {
      stopRequested.push(url)
      return answer()
    },
    resolveName: async () => {
      if (!isKnown) throw new Error('no such name')
      return ['192.0.2.1']
    },
    nowMs: () => NOW_MS,
  }
}

const at = (offsetMs: number) => (): Response =>
  new Response('{}', { headers: { date: new Date(NOW_MS + offsetMs).toUTCString() } })

describe('checkIdentity', () => {
  test('requests the issuer’s metadata, and names the public URL', async () => {
    const world = probes(at(2_000))
    expect(await checkIdentity(CONFIGURATION, world)).toEqual([
      { line: 'Auth0: reachable at https://id.example/, clocks differ by 1 s', isGood: true },
      { line: 'public URL https://sandwire.example (resolves to 192.0.2.1)', isGood: true },
    ])
    expect(world.stopRequested).toEqual(['https://id.example/.well-known/openid-configuration'])
  })

  test('requests the keys where metadata are not available', async () => {
    const world = probes(at(0))
    const issuers = [issuerFromPreset('oauth-do', { audience: 'a' })]
    await checkIdentity({ ...CONFIGURATION, issuers }, world)
    expect(world.stopRequested).toEqual(['https://id.org.ai/.well-known/jwks.json'])
  })

  test.each<[string, () => Response, string]>([
    ['a clock that is late', at(-70_000), "correct this machine's clock"],
    ['a clock that is early', at(70_000), "correct this machine's clock"],
    ['an issuer that is not there', () => new Response(null, { status: 404 }), 'answers 404'],
    ['an issuer that redirects', () => new Response(null, { status: 302 }), 'answers 302'],
    [
      'an issuer that does not answer',
      () => {
        throw new Error('refused')
      },
      'does not answer',
    ],
  ])('finds %s', async (_, answer, words) => {
    const [finding] = await checkIdentity(CONFIGURATION, probes(answer))
    expect(finding).toMatchObject({ isGood: false, line: expect.stringContaining(words) })
  })

  test('reports a public name that does not resolve', async () => {
    const [, finding] = await checkIdentity(CONFIGURATION, probes(at(0), false))
    expect(finding?.isGood).toBe(false)
  })

  test('lists identities without secrets', async () => {
    const { publicOrigin: _, ...local } = CONFIGURATION
    const secrets = { jwtSecret: 'CNRY', apiToken: 'CNRY' }
    const found = await checkIdentity({ ...local, mode: 'local', issuers: [], secrets }, probes(at(0)))
    expect(found).toHaveLength(3)
    expect(JSON.stringify(found)).not.toContain('CNRY')
  })
})
