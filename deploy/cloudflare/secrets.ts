import { findIdentityProblem, readSecrets } from '../../apps/control/src/auth/service-token.ts'
import { decodeSessionKeys } from '@sandwire/internal-api'

const SECRET_BYTES = 32

/** Secrets that a deployment cannot be without; made here when the Worker has none. */
export const MADE_SECRETS = [
  'SANDWIRE_SIGNING_KEY',
  'SANDWIRE_ID_KEY',
  'SESSION_TOKEN_SECRET',
  'API_TOKEN',
] as const
/** Secrets that only the operator can know; taken from the environment when they are there. */
export const GIVEN_SECRETS = ['JWT_SECRET', 'API_TOKEN', 'SESSION_TOKEN_SECRET'] as const

export type SecretName = (typeof MADE_SECRETS)[number] | (typeof GIVEN_SECRETS)[number]

function randomBytes(): Buffer {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))
}

async function makeSigningKey(): Promise<string> {
  const pair = await crypto.subtle.generateKey('Ed25519', true, ['sign', 'verify'])
  return Buffer.from(await crypto.subtle.exportKey('pkcs8', pair.privateKey)).toString('base64')
}

const makers: Readonly<Record<(typeof MADE_SECRETS)[number], () => string | Promise<string>>> = {
  SANDWIRE_SIGNING_KEY: makeSigningKey,
  SANDWIRE_ID_KEY: () => randomBytes().toString('base64'),
  SESSION_TOKEN_SECRET: () => `k1:${randomBytes().toString('base64')}`,
  API_TOKEN: () => randomBytes().toString('base64url'),
}

/**
 * What is to be uploaded: what the operator gives, and of the others what the Worker does not have. A key that is there is
 * never replaced: every sandbox id and every running sandbox hangs on it.
 */
export async function chooseSecrets(
  present: readonly string[],
  given: Readonly<Record<string, string | undefined>>,
): Promise<Partial<Record<SecretName, string>>> {
  const chosen: Partial<Record<SecretName, string>> = {}
  for (const name of GIVEN_SECRETS) {
    const value = given[name]
    if (value !== undefined && value !== '') chosen[name] = value
  }
  // With one that it does not accept, the server would let nobody in.
  const fault = findIdentityProblem({ mode: 'local', issuers: [] }, readSecrets(chosen))
  if (fault !== undefined) throw new Error(`Cannot use the secrets: ${fault}`)
  if (chosen.SESSION_TOKEN_SECRET !== undefined) decodeSessionKeys(chosen.SESSION_TOKEN_SECRET)
  for (const name of MADE_SECRETS)
    if (chosen[name] === undefined && !present.includes(name)) chosen[name] = await makers[name]()
  return chosen
}
