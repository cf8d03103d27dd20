import { schema } from '@sandwire/protocol'
import { isSecureUrl } from '../identity/issuer-config.ts'
import { anything, validateRecord } from '../validate-record.ts'

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** A model API that agents may use through the credential gateway. */
export interface ModelProvider {
  readonly id: string
  /** Format of its requests and responses. */
  readonly api: 'anthropic' | 'openai'
  readonly baseUrl: string
  /** Header that carries the secret; `authorization` gets it as a bearer token. */
  readonly header: string
  /** Name of the secret. */
  readonly secret: string
  /** Models by exact name, or by a prefix followed by `*`; the longest match counts. Others are refused. */
  readonly prices: Readonly<Record<string, ModelPrice>>
}

/** A git server, besides the known public ones. */
export interface GitHost {
  readonly host: string
  /** Where it is; default: `https://HOST`. */
  readonly url: string | undefined
  /** Name of the secret that holds its token; absent: no credential. */
  readonly secret: string | undefined
  readonly username: string
}

/** A header that the gateway adds to requests to another host. */
export interface HeaderRule {
  readonly host: string
  readonly url: string | undefined
  readonly header: string
  /** Text before the secret, such as `Bearer `. */
  readonly prefix: string
  readonly secret: string
  readonly methods: readonly string[]
  /** Prefixes of allowed paths. */
  readonly paths: readonly string[]
}

/** What the credential gateway adds to requests of agents, as configured by the operator. Secrets are named, never contained. */
export interface CredentialSettings {
  readonly providers: readonly ModelProvider[]
  readonly git: readonly GitHost[]
  readonly hosts: readonly HeaderRule[]
  /** GitHub's API, for installation tokens of the GitHub App. */
  readonly githubApiUrl: string
}

export const NO_CREDENTIAL_SETTINGS: CredentialSettings = {
  providers: [],
  git: [],
  hosts: [],
  githubApiUrl: 'https://api.github.com',
}

const MAX_ENTRIES = 32
const MAX_PRICES = 256
/** A name or address with an optional port. */
const HOST = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?$/
const HEADER = /^[a-z0-9-]{1,64}$/
/** Headers that decide about the connection, not about the caller. */
const REFUSED_HEADERS = ['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade']
const SECRET = /^[A-Z][A-Z0-9_]{0,63}$/
/** Secrets of control itself; the gateway never sends them to anyone. */
const OWN_SECRETS = /^(SANDWIRE_.*|SESSION_TOKEN_SECRET|JWT_SECRET|API_TOKEN|SLOT_.*)$/
const MODEL = /^[A-Za-z0-9._:/@-]{1,128}\*?$|^\*$/

const url: schema.Schema<string> = {
  decode: (value) =>
    typeof value === 'string' && isSecureUrl(value) ? value.replace(/\/+$/, '') : undefined,
  describe: 'url',
}
const header: schema.Schema<string> = {
  decode: (value) =>
    typeof value === 'string' && HEADER.test(value) && !REFUSED_HEADERS.includes(value) ? value : undefined,
  describe: 'header',
}
const secret: schema.Schema<string> = {
  decode: (value) =>
    typeof value === 'string' && SECRET.test(value) && !OWN_SECRETS.test(value) ? value : undefined,
  describe: 'secret',
}
const amount: schema.Schema<number> = {
  decode: (value) => (typeof value === 'number' && value >= 0 && value <= 100_000 ? value : undefined),
  describe: 'amount',
}

const urlField = { schema: url, expected: 'an https URL, or an http URL of this machine' }
const headerField = { schema: header, expected: 'the name of a header, in lower case' }
const secretField = { schema: secret, expected: 'the name of a secret, such as OPENAI_API_KEY' }
const hostField = { schema: schema.text(253, HOST), expected: 'a host name, such as github.example' }
const amountField = { schema: amount, expected: 'US dollars per million tokens' }

const PROVIDER = {
  id: { schema: schema.text(32, /^[a-z0-9-]+$/), expected: 'a short name of lower-case letters and digits' },
  api: { schema: schema.oneOf(['anthropic', 'openai']), expected: 'anthropic or openai' },
  baseUrl: urlField,
  header: { ...headerField, fallback: 'authorization' },
  secret: secretField,
  prices: { schema: anything, expected: 'an object with a price for each model' },
} as const
const PRICE = {
  input: amountField,
  output: amountField,
  cacheRead: { ...amountField, fallback: undefined },
  cacheWrite: { ...amountField, fallback: undefined },
} as const
const GIT = {
  host: hostField,
  url: { ...urlField, fallback: undefined },
  secret: { ...secretField, fallback: undefined },
  username: {
    schema: schema.text(64, /^[A-Za-z0-9._-]+$/),
    expected: 'a user name',
    fallback: 'x-access-token',
  },
} as const
const RULE = {
  host: hostField,
  url: { ...urlField, fallback: undefined },
  header: { ...headerField, fallback: 'authorization' },
  prefix: { schema: schema.text(64, /^[\x20-\x7e]*$/), expected: 'text', fallback: 'Bearer ' },
  secret: secretField,
  methods: {
    schema: schema.list(schema.oneOf(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']), 6),
    expected: 'a list of HTTP methods',
    fallback: ['GET', 'HEAD'],
  },
  paths: {
    schema: schema.list(schema.text(1024, /^\//), MAX_ENTRIES),
    expected: 'a list of path prefixes, each with a leading /',
    fallback: ['/'],
  },
} as const
const list = {
  schema: schema.list(anything, MAX_ENTRIES),
  expected: `a list of at most ${MAX_ENTRIES}`,
  fallback: [],
}
const SETTINGS = {
  providers: list,
  git: list,
  hosts: list,
  githubApiUrl: { ...urlField, fallback: NO_CREDENTIAL_SETTINGS.githubApiUrl },
} as const

function validatePrices(where: string, raw: unknown, problems: string[]): Record<string, ModelPrice> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) {
    problems.push(`${where}: expected an object`)
    return {}
  }
  const entries = Object.entries(raw)
  if (entries.length === 0 || entries.length > MAX_PRICES)
    problems.push(`${where}: expected 1 to ${MAX_PRICES} models`)
  return Object.fromEntries(
    entries.flatMap(([model, value]): (readonly [string, ModelPrice])[] => {
      if (!MODEL.test(model)) problems.push(`${where}: "${model}" is not a model, nor a prefix followed by *`)
      const price = validateRecord(`${where}.${model}`, value, PRICE, problems)
      if (price === undefined) return []
      const { input, output, cacheRead = input, cacheWrite = input } = price
      return [[model, { input, output, cacheRead, cacheWrite }]]
    }),
  )
}

function findDuplicates(where: string, names: readonly string[], problems: string[]): void {
  for (const name of new Set(names.filter((each, at) => names.indexOf(each) !== at)))
    problems.push(`${where}: "${name}" is defined twice`)
}

/** Decodes the operator's `credentials` and adds every problem to `problems`. */
export function validateCredentialSettings(raw: unknown, problems: string[]): CredentialSettings {
  const decoded = validateRecord('credentials', raw, SETTINGS, problems)
  if (decoded === undefined) return NO_CREDENTIAL_SETTINGS
  const providers = decoded.providers.flatMap((each, at): ModelProvider[] => {
    const where = `credentials.providers[${at}]`
    const provider = validateRecord(where, each, PROVIDER, problems)
    return provider === undefined
      ? []
      : [{ ...provider, prices: validatePrices(`${where}.prices`, provider.prices, problems) }]
  })
  const git = decoded.git.flatMap((each, at) => {
    return validateRecord(`credentials.git[${at}]`, each, GIT, problems) ?? []
  })
  const hosts = decoded.hosts.flatMap((each, at) => {
    return validateRecord(`credentials.hosts[${at}]`, each, RULE, problems) ?? []
  })
  findDuplicates(
    'credentials.providers',
    providers.map(({ id }) => id),
    problems,
  )
  findDuplicates(
    'credentials.git',
    git.map(({ host }) => host),
    problems,
  )
  findDuplicates(
    'credentials.hosts',
    hosts.map(({ host }) => host),
    problems,
  )
  return { providers, git, hosts, githubApiUrl: decoded.githubApiUrl }
}

/** Names of the secrets that the settings use. */
export function secretNamesOf({ providers, git, hosts }: CredentialSettings): readonly string[] {
  const names = [...providers, ...git, ...hosts].map(({ secret: name }) => name)
  return [...new Set(names.filter((name) => name !== undefined))]
}

/** URLs that the gateway connects to by these settings, besides the well-known ones. */
export function upstreamUrlsOf({
  providers,
  git,
  hosts,
  githubApiUrl,
}: CredentialSettings): readonly string[] {
  return [
    githubApiUrl,
    ...providers.map(({ baseUrl }) => baseUrl),
    ...[...git, ...hosts].map((each) => each.url ?? `https://${each.host}`),
  ]
}
