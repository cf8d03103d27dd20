import { findIdentityProblem, readSecrets } from '../../apps/control/src/auth/service-token.ts'
import { decodeSessionKeys } from '@sandwire/internal-api'
import { validateCredentialSettings } from '@sandwire/operator-settings'
import { removeCredentials, validateCredentials } from '../../apps/host/src/settings/credentials.ts'
import { readSecretFile } from '../../apps/host/src/settings/input.ts'

const SECRET_BYTES = 32

/** Required secrets; generated when the Worker has none. */
const MADE_SECRETS = ['SANDWIRE_SIGNING_KEY', 'SANDWIRE_ID_KEY', 'SESSION_TOKEN_SECRET', 'API_TOKEN'] as const
/** Secrets of the operator that need no settings. Those of agents depend on the settings. */
const GIVEN_SECRETS = ['JWT_SECRET', 'API_TOKEN', 'SESSION_TOKEN_SECRET'] as const

export type Secrets = Readonly<Record<string, string>>

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
 * Takes the operator's secrets out of the environment, so that no child inherits them: by their names, those of agents also from
 * files that `NAME_FILE` names. Throws with every problem, and with no value.
 */
export function takeGivenSecrets(
  env: Record<string, string | undefined>,
  control: Readonly<Record<string, unknown>> = {},
): Secrets {
  const problems: string[] = []
  const settings = validateCredentialSettings(control['credentials'] ?? {}, problems)
  const agents = validateCredentials(env, settings, readSecretFile, problems)
  for (const url of agents.upstreamUrls)
    if (!url.startsWith('https:'))
      problems.push(`${url} cannot be reached from Cloudflare: give an https URL`)
  if (problems.length > 0) throw new Error(`Cannot use the secrets: ${problems.join('; ')}`)
  const given = GIVEN_SECRETS.flatMap((name): readonly (readonly [string, string])[] => {
    const value = env[name]
    return value === undefined || value === '' ? [] : [[name, value]]
  })
  for (const name of GIVEN_SECRETS) delete env[name]
  removeCredentials(env, agents)
  return { ...Object.fromEntries(given), ...agents.credentials }
}

/**
 * The secrets to upload: those the operator gives, and missing ones. An existing key is never replaced, because
 * every sandbox id and every running sandbox depends on it.
 */
export async function chooseSecrets(present: readonly string[], given: Secrets): Promise<Secrets> {
  const chosen: Record<string, string> = { ...given }
  // The server would refuse every request with an invalid secret.
  const problem = findIdentityProblem({ mode: 'local', issuers: [] }, readSecrets(chosen))
  if (problem !== undefined) throw new Error(`Cannot use the secrets: ${problem}`)
  if (chosen['SESSION_TOKEN_SECRET'] !== undefined) decodeSessionKeys(chosen['SESSION_TOKEN_SECRET'])
  for (const name of MADE_SECRETS)
    if (chosen[name] === undefined && !present.includes(name)) chosen[name] = await makers[name]()
  return chosen
}
