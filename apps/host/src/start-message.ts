import type { HostHealth } from '@sandwire/internal-api'

export interface StartMessageFacts {
  readonly url: string
  readonly signInLink: string
  readonly mode: 'local' | 'open'
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  readonly hasTls: boolean
  /** Who can sign in besides this machine's user. */
  readonly identities: readonly string[]
  readonly isolation: HostHealth['isolation']
  /** Who started it, and so who commands run as where nothing isolates them. */
  readonly isRoot: boolean
  readonly weaknesses: readonly string[]
  /** Why sandboxes are less isolated than they could be. */
  readonly notice?: string
  /** Programs that sandboxes take from this machine and that are not installed. */
  readonly missingPrograms: readonly string[]
  /** Sandboxes that outlived the last host. */
  readonly adopted: number
  /** Whether sandboxes run on when it ends. */
  readonly keepsSandboxes: boolean
  /** Folder that is served, when one is. */
  readonly workspace?: string
  /** Set when `sbx-stdio` cannot find the token by itself. */
  readonly tokenFile?: string
  /** Where `npx` finds the programs. */
  readonly programs: string
}

function describeIsolation({ isolation, isRoot, weaknesses, notice }: StartMessageFacts): string {
  if (isolation === 'none') {
    const danger = `every command in a sandbox runs as ${isRoot ? 'ROOT' : 'you'} on this machine`
    return `none, loopback only: ${danger}. ${notice ?? 'Sandboxes are not isolated'}`
  }
  if (weaknesses.length === 0) return isolation
  return `${isolation}, with ${weaknesses.length} ${weaknesses.length === 1 ? 'weakness' : 'weaknesses'} on this machine`
}

function describeSignIn({
  signInLink,
  mode,
  identities,
  listen,
  hasTls,
}: StartMessageFacts): readonly string[] {
  const who = identities.join(', ')
  if (mode === 'local')
    return [
      `Sign in    ${signInLink}`,
      '           works once, for 10 minutes; another: npx sandwire signin',
      ...(who === '' ? [] : [`           others with ${who}`]),
    ]
  const proxy = hasTls ? '' : ', behind a proxy that speaks TLS'
  return [
    `Sign in    ${signInLink}, with ${who}`,
    '           this machine’s user too: the local token is not accepted while others can get here',
    `Listens    ${listen.join(', ')}${proxy}`,
  ]
}

function describeTerminal({
  url,
  mode,
  workspace,
  tokenFile,
  programs,
}: StartMessageFacts): readonly string[] {
  const sandbox = workspace === undefined ? 'dev' : 'local'
  const token = tokenFile === undefined ? '' : ` --token-file ${tokenFile}`
  const attach = `npx sbx-stdio ${url}/attach --sandbox ${sandbox} --cmd bash${token}`
  return mode === 'open'
    ? [`Terminal   npx sbx-stdio login ${url}`, `           ${attach}`]
    : [`Terminal   ${attach}`, `           in a second terminal, from ${programs}`]
}

function describeMissing(programs: readonly string[]): readonly string[] {
  return programs.includes('git')
    ? ['Git        not installed on this machine: git does not work in sandboxes']
    : []
}

function describeEnd({ isolation, keepsSandboxes }: StartMessageFacts): string {
  if (keepsSandboxes) return 'Ctrl-C stops it; its sandboxes run on for the next start.'
  return `Ctrl-C stops it and its sandboxes; their files ${isolation === 'container' ? 'are lost' : 'stay'}.`
}

/** What a person reads when it runs. */
export function formatStartMessage(facts: StartMessageFacts): string {
  const { url, adopted, workspace } = facts
  const found = adopted === 0 ? '' : `, ${adopted} ${adopted === 1 ? 'sandbox' : 'sandboxes'} found running`
  const over = workspace === undefined ? '' : `, over ${workspace}`
  const lines = [
    ...describeSignIn(facts),
    ...describeTerminal(facts),
    `Isolation  ${describeIsolation(facts)}; details: npx sandwire doctor`,
    ...describeMissing(facts.missingPrograms),
  ]
  return `Sandwire runs at ${url}${over}${found}

${lines.map((line) => `  ${line}\n`).join('')}
${describeEnd(facts)}
`
}
