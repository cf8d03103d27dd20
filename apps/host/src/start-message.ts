import type { HostHealth } from '@sandwire/internal-api'

export interface StartMessageFacts {
  readonly url: string
  readonly signInLink: string
  readonly mode: 'local' | 'open'
  /** `HOST:PORT` of every public socket. */
  readonly listen: readonly string[]
  readonly hasTls: boolean
  /** Issuers and services besides the local user. */
  readonly identities: readonly string[]
  readonly isolation: HostHealth['isolation']
  /** True when root started it: commands without isolation then run as root. */
  readonly isRoot: boolean
  readonly weaknesses: readonly string[]
  /** Why isolation is weaker than bubblewrap's. */
  readonly notice?: string
  /** Programs that sandboxes use from this machine and that are not installed. */
  readonly missingPrograms: readonly string[]
  /** Number of sandboxes that outlived the last host. */
  readonly adopted: number
  /** True when sandboxes keep running after exit. */
  readonly keepsSandboxes: boolean
  /** True when sandboxes' files are saved in a store. */
  readonly savesFiles: boolean
  /** The served folder, if any. */
  readonly workspace?: string
  /** Set when `sbx-stdio` cannot find the token itself. */
  readonly tokenFile?: string
  /** Folder in which `npx` finds the programs. */
  readonly programs: string
}

function describeIsolation({ isolation, isRoot, weaknesses, notice }: StartMessageFacts): string {
  if (isolation === 'none') {
    const danger = `commands in sandboxes run as ${isRoot ? 'ROOT' : 'you'} on this machine`
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
  const issuers = identities.join(', ')
  if (mode === 'local')
    return [
      `Sign in    ${signInLink}`,
      '           Works once, for 10 minutes. New link: npx sandwire signin',
      ...(issuers === '' ? [] : [`           Others sign in with ${issuers}`]),
    ]
  const proxy = hasTls ? '' : ', for a proxy that terminates TLS'
  return [
    `Sign in    ${signInLink}, with ${issuers}`,
    '           The local token is not accepted while other machines can connect',
    `Listening  ${listen.join(', ')}${proxy}`,
  ]
}

function describeTerminal({
  url,
  mode,
  workspace,
  isolation,
  tokenFile,
  programs,
}: StartMessageFacts): readonly string[] {
  const sandbox = workspace !== undefined ? 'local' : isolation === 'sprite' ? 'default' : 'dev'
  const token = tokenFile === undefined ? '' : ` --token-file ${tokenFile}`
  const attach = `npx sbx-stdio ${url}/attach --sandbox ${sandbox} --cmd bash${token}`
  return mode === 'open'
    ? [`Terminal   npx sbx-stdio login ${url}`, `           ${attach}`]
    : [`Terminal   ${attach}`, `           Run it in a second terminal, in ${programs}`]
}

function describeMissing(programs: readonly string[]): readonly string[] {
  return programs.includes('git')
    ? ['Git        not installed on this machine, so git does not work in sandboxes']
    : []
}

function describeExit({ isolation, keepsSandboxes, savesFiles }: StartMessageFacts): string {
  if (isolation === 'sprite') return 'Ctrl-C stops the server; sandboxes keep running in their sprites.'
  if (keepsSandboxes) return 'Ctrl-C stops the server; sandboxes keep running.'
  return isolation === 'container' && !savesFiles
    ? 'Ctrl-C stops the server and all sandboxes; files in containers are lost.'
    : 'Ctrl-C stops the server and all sandboxes; files are kept.'
}

/** Formats what `up` prints when the server is running. */
export function formatStartMessage(facts: StartMessageFacts): string {
  const { url, adopted, workspace } = facts
  const found = adopted === 0 ? '' : `, ${adopted} ${adopted === 1 ? 'sandbox' : 'sandboxes'} still running`
  const served = workspace === undefined ? '' : `, serving ${workspace}`
  const lines = [
    ...describeSignIn(facts),
    ...describeTerminal(facts),
    `Isolation  ${describeIsolation(facts)}. Details: npx sandwire doctor`,
    ...describeMissing(facts.missingPrograms),
  ]
  return `Sandwire is running at ${url}${served}${found}

${lines.map((line) => `  ${line}\n`).join('')}
${describeExit(facts)}
`
}
