import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { POLICIES, type Policy } from '../src/routes/policies.ts'
import {
  type CredentialKind,
  CREDENTIALS,
  expectedOf,
  CALLERS,
  type CallerKind,
} from './support/matrix/rules.ts'
import { type MatrixResult, MatrixFixture } from './support/matrix/fixture.ts'
import { type Target, type Verb, VERBS } from './support/matrix/verbs.ts'
import { fieldOf } from './support/json.ts'

/** Long enough for a loaded machine. */
const TIMEOUT_MS = 180_000

const kindsOf = <K extends string>(record: Readonly<Record<K, unknown>>): K[] => Object.keys(record) as K[]

interface Case {
  readonly route: string
  readonly verb: Verb
}
const cases: readonly Case[] = Object.entries(VERBS).flatMap(([route, verbs]) =>
  verbs.map((verb) => ({ route, verb })),
)
const titleOf = ({ route, verb }: Case): string => (verb.how === undefined ? route : `${route} ${verb.how}`)
const methodOf = (route: string): string => route.split(' ')[0] ?? ''
const policyOf = ({ route }: Case): Policy => POLICIES[route] ?? 'public'

let fixture: MatrixFixture
let shared: Target
beforeAll(async () => {
  fixture = await MatrixFixture.open()
  shared = await fixture.createTarget()
}, TIMEOUT_MS)
afterAll(() => fixture[Symbol.asyncDispose]())

async function requestAs(
  { route, verb }: Case,
  target: Target,
  [kind, credential]: readonly [CallerKind, CredentialKind],
  name: string = kind,
): Promise<MatrixResult> {
  return fixture.request(
    methodOf(route),
    verb.request({ ...target, name }),
    await fixture.client(kind, credential, name),
  )
}

/** The outcome of a verb for one caller. A change that may succeed gets a fixture of its own. */
async function outcomeOf(
  one: Case,
  who: readonly [CallerKind, CredentialKind],
  isAllowed: boolean,
): Promise<string> {
  const { changes, expectedError } = one.verb
  const name = changes === 'account' ? crypto.randomUUID() : who[0]
  const target = changes === 'target' && isAllowed ? await fixture.createTarget() : shared
  const { outcome } = await requestAs(one, target, who, name)
  if (target !== shared) await fixture.removeTarget(target)
  return outcome === expectedError ? 'allowed' : outcome
}

describe('the matrix', () => {
  test('has every route', () => {
    expect(kindsOf(POLICIES).filter((route) => !Object.hasOwn(VERBS, route))).toEqual([])
    expect(kindsOf(VERBS).filter((route) => !Object.hasOwn(POLICIES, route))).toEqual([])
  })

  test('has every route that the router serves', async () => {
    const owner = await fixture.client('owner')
    const { body } = await owner.get('/api/openapi.json')
    const paths = Object.entries(Object(fieldOf(body, 'paths')) as Record<string, object>)
    const served = paths.flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
    expect(served.length).toBeGreaterThan(20)
    expect(served.filter((route) => !Object.hasOwn(VERBS, route))).toEqual([])
  })
})

describe('who may do what (threat T4, threat T9)', () => {
  for (const one of cases) {
    const policy = policyOf(one)
    if (policy === 'public') continue
    test(
      titleOf(one),
      async () => {
        const expected: Record<string, string> = {}
        const actual: Record<string, string> = {}
        for (const kind of kindsOf(CALLERS))
          for (const credential of kindsOf(CREDENTIALS)) {
            const who = [kind, credential] as const
            const key = `${kind}, ${credential}`
            const wanted = expectedOf(policy, one.verb, who)
            expected[key] = wanted
            actual[key] = await outcomeOf(one, who, wanted === 'allowed')
          }
        expect(actual).toEqual(expected)
      },
      TIMEOUT_MS,
    )
  }
})

describe('public routes have the same response for every caller', () => {
  for (const one of cases.filter((each) => policyOf(each) === 'public'))
    test(titleOf(one), async () => {
      const anonymous = await requestAs(one, shared, ['none', 'all scopes'])
      expect(anonymous.outcome).not.toBe('forbidden')
      for (const kind of ['owner', 'stranger'] as const)
        expect(await requestAs(one, shared, [kind, 'all scopes'])).toEqual(anonymous)
    })
})

describe('a sandbox of another account and a missing one have the same response (threat T4)', () => {
  /** A sandbox that never existed and one that was destroyed. */
  let forged: Target
  let gone: Target
  beforeAll(async () => {
    const forge = (id: string): string => `${'0'.repeat(8)}${id.slice(8)}`
    const { sandbox, session, grant, run, conversation } = shared
    forged = {
      sandbox: forge(sandbox),
      session: session.replace(sandbox, forge(sandbox)),
      grant: grant.replace(sandbox, forge(sandbox)),
      run: run.replace(sandbox, forge(sandbox)),
      conversation: conversation.replace(sandbox, forge(sandbox)),
    }
    gone = await fixture.createTarget()
    await fixture.removeTarget(gone)
  }, TIMEOUT_MS)

  const named = cases.filter((each) => {
    const policy = policyOf(each)
    return policy !== 'public' && policy.need !== 'self'
  })
  for (const one of named)
    test(titleOf(one), async () => {
      const foreign = await requestAs(one, shared, ['stranger', 'all scopes'])
      expect(foreign.outcome).toMatch(/not_found$/)
      expect(await requestAs(one, forged, ['stranger', 'all scopes'])).toEqual(foreign)
      expect(await requestAs(one, gone, ['stranger', 'all scopes'])).toEqual(foreign)
      // The response does not reveal which parts exist either.
      const otherSession = { ...shared, session: `${shared.session.slice(0, -8)}00000000` }
      expect(await requestAs(one, otherSession, ['stranger', 'all scopes'])).toEqual(foreign)
      expect(await requestAs(one, shared, ['revoked', 'all scopes'])).toEqual(foreign)
    })
})
