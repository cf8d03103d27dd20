/** An operator's settings of a deployment, in `deploy/cloudflare/settings.json`. */
export interface DeploySettings {
  /** Public URL: `https://NAME.ACCOUNT.workers.dev` or a custom domain. */
  readonly url: string
  /** Name of the Worker. */
  readonly name?: string
  /** Size of the sandboxes' containers. */
  readonly instanceType?: string
  /** Maximum of concurrent sandboxes. */
  readonly maxInstances?: number
  /** Name of the R2 bucket. */
  readonly bucket?: string
  /** Base image of sandboxes; default: that of the Dockerfile. */
  readonly base?: string
  /** Coding agents whose programs the image contains, each `NAME` or `NAME@VERSION`. */
  readonly agents?: readonly string[]
  /** Further settings of control: issuers, limits, commands and so on. */
  readonly control?: Readonly<Record<string, unknown>>
}

/** Settings that the platform determines. */
const DECIDED = [
  'mode',
  'provider',
  'workspaceMode',
  'hosts',
  'publicOrigins',
  'privateOrigins',
  'hasTls',
  'localTokenSha256',
]

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** An https URL without a path, in the format of `URL.origin`. */
function isOrigin(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false
  const { protocol, origin } = new URL(value)
  return protocol === 'https:' && origin === value
}

function isControl(value: unknown): boolean {
  return isRecord(value) && DECIDED.every((key) => !Object.hasOwn(value, key))
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(value)
}

/** The validation of each key and its error message. */
const RULES: Readonly<
  Record<keyof DeploySettings, readonly [fits: (value: unknown) => boolean, told: string]>
> = {
  url: [isOrigin, 'expected https://HOST without a path'],
  name: [isName, 'expected 3 to 63 lower-case letters, digits and inner hyphens'],
  instanceType: [
    (value) => typeof value === 'string' && /^(?:lite|basic|standard-[1-4])$/.test(value),
    'expected lite, basic or standard-1 to standard-4',
  ],
  maxInstances: [(value) => Number.isSafeInteger(value) && Number(value) >= 1, 'expected a whole number'],
  bucket: [isName, 'expected 3 to 63 lower-case letters, digits and inner hyphens'],
  base: [
    (value) => typeof value === 'string' && /^[\w][\w./:@-]*$/.test(value),
    'expected the name of an image',
  ],
  agents: [
    (value) =>
      Array.isArray(value) &&
      value.every((each) => typeof each === 'string' && /^[a-z0-9-]+(@[\w.+-]+)?$/.test(each)),
    'expected a list of agents, such as claude',
  ],
  control: [isControl, `expected settings of control without ${DECIDED.join(', ')}`],
}

function isSettings(value: unknown, problems: readonly string[]): value is DeploySettings {
  return problems.length === 0 && isRecord(value)
}

/** Validates the settings; throws with all problems. */
export function decodeSettings(text: string): DeploySettings {
  const value: unknown = JSON.parse(text)
  const given = isRecord(value) ? value : {}
  const problems = Object.entries(RULES)
    .filter(([key, [fits]]) => (key === 'url' || Object.hasOwn(given, key)) && !fits(given[key]))
    .map(([key, [, told]]) => `${key}: ${told}`)
  for (const key of Object.keys(given)) if (!Object.hasOwn(RULES, key)) problems.push(`${key}: unknown`)
  if (isSettings(value, problems)) return value
  throw new Error(`Cannot use the settings of the deployment: ${problems.join('; ')}`)
}
