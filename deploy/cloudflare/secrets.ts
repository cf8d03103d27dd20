import { findIdentityProblem, readSecrets } from '../../apps/control/src/auth/service-token.ts'
import { decodeSessionKeys } from '@sandwire/internal-api'

const SECRET_BYTES = 32

/** Required secrets; generated when the Worker has none. */
export const MADE_SECRETS = [
  'SANDWIRE_SIGNING_KEY',
  'SANDWIRE_ID_KEY',
  'SESSION_TOKEN_SECRET',
  'API_TOKEN',
] as const
/** Optional secrets of the operator, from the environment. */
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
 * The secrets to upload: those the operator gives, and missing ones. An existing key is never replaced, because
 * every sandbox id and every running sandbox depends on it.
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
  // The server would refuse every request with an invalid secret.
  const problem = findIdentityProblem({ mode: 'local', issuers: [] }, readSecrets(chosen))
  if (problem !== undefined) throw new Error(`Cannot use the secrets: ${problem}`)
  if (chosen.SESSION_TOKEN_SECRET !== undefined) decodeSessionKeys(chosen.SESSION_TOKEN_SECRET)
  for (const name of MADE_SECRETS)
    if (chosen[name] === undefined && !present.includes(name)) chosen[name] = await makers[name]()
  return chosen
}
