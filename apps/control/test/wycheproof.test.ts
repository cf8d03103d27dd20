import { describe, expect, test } from 'bun:test'
import { ISSUER_ALGORITHMS } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { createLocalJWKSet, type CryptoKey, errors, importJWK, type JWK } from 'jose'
import { parseJwt, verifyJwt } from '../src/auth/jwt.ts'
import { SERVICE_ALGORITHM } from '../src/auth/service-token.ts'
import vectors from './data/json_web_signature_test.json'

interface Group {
  readonly comment: string
  readonly public?: JWK
  readonly private?: JWK
  readonly tests: readonly Vector[]
}
interface Vector {
  readonly tcId: number
  readonly comment: string
  readonly jws: unknown
  readonly result: string
}
const GROUPS = vectors.testGroups as unknown as readonly Group[]

/** Algorithms of every kind of token that we accept. */
const PINNED: readonly string[] = [...ISSUER_ALGORITHMS, SERVICE_ALGORITHM]

/** Labeled invalid for their padding, but they have none: both are identical to the valid vector 357. */
const SAME_AS_GOOD: readonly number[] = [367, 370]
/** Labeled valid, but contain a `?`, which is not base64url (RFC 7515, section 2). We refuse them. */
const TOO_LENIENT: readonly number[] = [372, 373]

/** True if the caught error is about the claims, which are checked after the signature: the vectors are no JWTs. */
function isClaimsError(caught: unknown): boolean {
  const cause = caught instanceof SandwireError ? caught.cause : undefined
  return cause instanceof errors.JWTInvalid || cause instanceof errors.JWTClaimValidationFailed
}

/** Verifies a vector as a token is verified, with the group's key supplied as for that kind of token. */
async function isAccepted(group: Group, { jws }: Vector): Promise<boolean> {
  const nowMs = Date.now()
  try {
    const jwt = parseJwt(String(jws))
    if (group.public === undefined) {
      const key = (await importJWK(group.private ?? {}, 'HS256')) as CryptoKey
      await verifyJwt(jwt, key, { algorithms: [SERVICE_ALGORITHM], nowMs })
    } else {
      const keys = createLocalJWKSet({ keys: [group.public] })
      await verifyJwt(jwt, keys, { algorithms: ISSUER_ALGORITHMS, nowMs })
    }
    return true
  } catch (caught) {
    return isClaimsError(caught)
  }
}

function algorithmOf(jws: unknown): string | undefined {
  try {
    return parseJwt(String(jws)).alg
  } catch {
    return undefined
  }
}

describe('signatures of Project Wycheproof (threat T34)', () => {
  test('are complete', () => {
    expect(GROUPS.flatMap(({ tests }) => tests)).toHaveLength(401)
  })

  const cases = GROUPS.flatMap((group) => group.tests.map((vector) => ({ group, vector })))
  test('are refused when invalid', async () => {
    const wrong = []
    for (const { group, vector } of cases)
      if (vector.result === 'invalid' && !SAME_AS_GOOD.includes(vector.tcId))
        if (await isAccepted(group, vector)) wrong.push(`${vector.tcId} ${group.comment} ${vector.comment}`)
    expect(wrong).toEqual([])
  })

  test('are accepted when valid and of a supported algorithm', async () => {
    const wrong = []
    let accepted = 0
    for (const { group, vector } of cases) {
      if (vector.result !== 'valid' || TOO_LENIENT.includes(vector.tcId)) continue
      const isOurs = PINNED.includes(algorithmOf(vector.jws) ?? '')
      if ((await isAccepted(group, vector)) === isOurs) accepted += Number(isOurs)
      else wrong.push(`${vector.tcId} ${group.comment} ${vector.comment}`)
    }
    expect({ wrong, accepted }).toEqual({ wrong: [], accepted: 24 })
  })
  test('are verified by their content where their label is wrong', async () => {
    const byId = (id: number) => cases.find(({ vector }) => vector.tcId === id)
    for (const id of SAME_AS_GOOD) expect(byId(id)?.vector.jws).toBe(byId(357)?.vector.jws)
    for (const id of TOO_LENIENT) {
      const found = byId(id)
      expect(found !== undefined && (await isAccepted(found.group, found.vector))).toBe(false)
    }
  })
})
