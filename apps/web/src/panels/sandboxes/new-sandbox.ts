import type { Network, NewSandbox, Sandbox } from '../../api/sandboxes.ts'
import type { FirstCommand } from '../../terminals/terminals.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

/** What was typed into the form, those parts among it that the chosen network hides. */
interface NewSandboxForm {
  readonly name: string
  readonly policy: Network
  readonly hosts: string
  readonly repository: string
}

/** What is to be made of a form, or why nothing. */
type SandboxPlan =
  | { readonly is: 'refused'; readonly why: string }
  | { readonly is: 'good'; readonly sandbox: NewSandbox; readonly firstCommand?: FirstCommand }

/** Networks that can be chosen, the usual one first: where nothing keeps sandboxes in, nothing keeps them from a network either. */
export function networksFor(known: readonly Pick<Sandbox, 'isolation'>[]): readonly [Network, ...Network[]] {
  return known.some(({ isolation }) => isolation === 'none') ? ['open'] : ['none', 'allowlist', 'open']
}

/** Hosts as they are typed: separated by spaces, commas or lines. */
function readHosts(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((host) => host !== '')
}

/** Reads a form. Only what its person sees counts: a network of none has neither hosts nor a repository. */
export function planSandbox({ name, policy, hosts, repository }: NewSandboxForm): SandboxPlan {
  const address = policy === 'none' ? '' : repository.trim()
  if (address !== '' && !isRepositoryAddress(address))
    return { is: 'refused', why: sandboxTexts.create.badRepository }
  const allow = policy === 'allowlist' ? readHosts(hosts) : []
  if (policy === 'allowlist' && allow.length === 0) return { is: 'refused', why: sandboxTexts.create.noHosts }
  const network = { policy, allow }
  return {
    is: 'good',
    sandbox: { ...(name.trim() === '' ? {} : { name: name.trim() }), network, start: true },
    ...(address === '' ? {} : { firstCommand: cloneCommand(address) }),
  }
}

/** Addresses that git may be given: of the web, without a password, and nothing that is an option or a program. */
export function isRepositoryAddress(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text)
    return protocol === 'https:' && username === '' && password === '' && !/\s/.test(text)
  } catch {
    // No address at all.
    return false
  }
}

/** Says what it does, does it, and goes on as the shell of whoever looks at it. */
const CLONE_THEN_SHELL = `printf 'git clone %s\\n' "$1"; git clone -- "$1" .; exec "\${SHELL:-/bin/sh}" -l`

/** Fetches a repository into the folder that a terminal starts in. The address is an argument, never a part of the script. */
export function cloneCommand(address: string): FirstCommand {
  return { cmd: '/bin/sh', args: ['-c', CLONE_THEN_SHELL, 'clone', new URL(address).href] }
}
