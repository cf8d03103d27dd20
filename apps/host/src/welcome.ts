import type { SandboxKeeper } from './sandboxes/keeper.ts'

export interface WelcomeFacts {
  readonly url: string
  readonly signInLink: string
  readonly isolation: SandboxKeeper['isolation']
  /** Who started it, and so who commands run as where nothing isolates them. */
  readonly isRoot: boolean
  readonly weaknesses: readonly string[]
  /** Why sandboxes are less isolated than they could be. */
  readonly notice?: string
  /** Sandboxes that outlived the last host. */
  readonly adopted: number
  /** Folder that is served, when one is. */
  readonly workspace?: string
  /** Set when `sbx-stdio` cannot find the token by itself. */
  readonly tokenFile?: string
  /** Where `npx` finds the programs. */
  readonly programs: string
}

function describeIsolation({ isolation, isRoot, weaknesses, notice }: WelcomeFacts): string {
  if (isolation === 'none') {
    const danger = `every command in a sandbox runs as ${isRoot ? 'ROOT' : 'you'} on this machine`
    return `none, loopback only: ${danger}. ${notice ?? 'Sandboxes are not isolated'}`
  }
  if (weaknesses.length === 0) return 'bubblewrap'
  return `bubblewrap, with ${weaknesses.length} ${weaknesses.length === 1 ? 'weakness' : 'weaknesses'} on this machine`
}

/** What a person reads when it runs. */
export function composeWelcome(facts: WelcomeFacts): string {
  const { url, signInLink, adopted, workspace, tokenFile, programs } = facts
  const sandbox = workspace === undefined ? 'dev' : 'local'
  const token = tokenFile === undefined ? '' : ` --token-file ${tokenFile}`
  const found = adopted === 0 ? '' : `, ${adopted} ${adopted === 1 ? 'sandbox' : 'sandboxes'} found running`
  const over = workspace === undefined ? '' : `, over ${workspace}`
  return `Sandwire runs at ${url}${over}${found}

  Sign in    ${signInLink}
             works once, for 10 minutes; another: npx sandwire signin
  Terminal   npx sbx-stdio ${url}/attach --sandbox ${sandbox} --cmd bash${token}
             in a second terminal, from ${programs}
  Isolation  ${describeIsolation(facts)}; details: npx sandwire doctor

Ctrl-C stops it and its sandboxes; their files stay.
`
}
