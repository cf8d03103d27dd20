import type { IssuerConfig } from '@sandwire/operator-settings'
import type { Environment } from './environment.ts'
import { grantWish, type IssuerWish, nameVariable, wishFromEnvironment } from './issuer-wish.ts'
import { judgeSecrets, type Secrets } from './secrets.ts'

/** Who says who people are. */
export interface Identity {
  readonly issuers: readonly IssuerConfig[]
  readonly secrets: Secrets
  /** Authorities that issuers' certificates may come from besides those of browsers, in PEM. */
  readonly issuerAuthorities?: string
}

interface IdentitySurroundings {
  readonly env: Environment
  readonly readFile: (file: string) => string | undefined
  readonly readSecretFile: (file: string) => string
}

function grantAll(wishes: readonly IssuerWish[], problems: string[]): readonly IssuerConfig[] {
  return wishes.flatMap((wish) => {
    try {
      return [grantWish(wish)]
    } catch (error) {
      problems.push(error instanceof Error ? error.message : 'Cannot use an issuer')
      return []
    }
  })
}

/** Two that cannot be told apart would make two people one. */
function refuseTwins(issuers: readonly IssuerConfig[], problems: string[]): void {
  for (const [at, { id, issuer }] of issuers.entries()) {
    const before = issuers.slice(0, at)
    if (before.some((other) => other.id === id))
      problems.push(`Two issuers have the id "${id}": give one of them another with "id"`)
    if (before.some((other) => other.issuer === issuer))
      problems.push(`The issuer "${issuer}" is there twice: leave one out`)
  }
}

function judgeAuthorities({ env, readFile }: IdentitySurroundings, problems: string[]): string | undefined {
  const file = env['SANDWIRE_ISSUER_CA_FILE'] ?? ''
  if (file === '') return undefined
  try {
    const text = readFile(file)
    if (text === undefined) throw new Error('there is no such file, or this user may not see it')
    if (text.includes('-----BEGIN CERTIFICATE-----')) return text
    problems.push(`SANDWIRE_ISSUER_CA_FILE is "${file}": it holds no certificate in PEM`)
  } catch (error) {
    problems.push(
      `SANDWIRE_ISSUER_CA_FILE is "${file}": ${error instanceof Error ? error.message : 'not readable'}`,
    )
  }
  return undefined
}

/** Judges everything that says who people are: issuers of variables and of the settings file, and secrets. */
export function judgeIdentity(
  around: IdentitySurroundings,
  wishes: readonly IssuerWish[],
  problems: string[],
): Identity {
  const own = wishFromEnvironment(around.env, problems)
  const ownProblems: string[] = []
  const ownIssuers = grantAll(own === undefined ? [] : [own], ownProblems)
  problems.push(...ownProblems.map(nameVariable))
  const issuers = [...ownIssuers, ...grantAll(wishes, problems)]
  refuseTwins(issuers, problems)
  const secrets = judgeSecrets(around.env, around.readSecretFile, problems)
  const issuerAuthorities = judgeAuthorities(around, problems)
  return { issuers, secrets, ...(issuerAuthorities !== undefined && { issuerAuthorities }) }
}

/** Whether anybody but this machine's user can be told apart. */
export function hasIdentity({ issuers, secrets }: Identity): boolean {
  return issuers.length > 0 || secrets.jwtSecret !== undefined || secrets.apiToken !== undefined
}

/** Who can sign in, as people are told. */
export function nameIdentities({ issuers, secrets }: Identity): readonly string[] {
  return [
    ...issuers.map(({ name, issuer }) => `${name} (${issuer})`),
    ...(secrets.jwtSecret === undefined ? [] : ['service tokens']),
    ...(secrets.apiToken === undefined ? [] : ['the API token']),
  ]
}
