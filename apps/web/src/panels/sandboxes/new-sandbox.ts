import type { Network, NewSandbox, Sandbox } from '../../api/sandboxes.ts'
import type { FirstCommand } from '../../terminals/terminals.ts'
import { isSandboxId } from '../../state/sandbox-names.ts'
import { sandboxTexts } from '../../texts/sandboxes.ts'

/** The form's values, including fields that the selected network hides. */
interface NewSandboxForm {
  readonly name: string
  readonly network: Network
  readonly hosts: string
  readonly repository: string
}

/** The request that a form makes, or why it is invalid. */
type SandboxPlan =
  | { readonly kind: 'invalid'; readonly problem: string }
  | { readonly kind: 'valid'; readonly sandbox: NewSandbox; readonly firstCommand?: FirstCommand }

/** False if a sandbox of this server is known to run without isolation. */
export function hasIsolation(sandboxes: readonly Pick<Sandbox, 'isolation'>[]): boolean {
  return sandboxes.every(({ isolation }) => isolation !== 'none')
}

const NETWORKS: readonly Network[] = ['none', 'allowlist', 'open']

/**
 * The networks on offer, default first: those that the operator allows, once they are known. Without isolation, network access
 * cannot be limited.
 */
export function networksFor(isIsolated: boolean, allowed: readonly Network[] = NETWORKS): readonly Network[] {
  return isIsolated ? NETWORKS.filter((network) => allowed.includes(network)) : ['open']
}

/** What control accepts as the name of a sandbox. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/** Hosts separated by spaces, commas or line breaks. */
function readHosts(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((host) => host !== '')
}

/** Validates a form. Hidden fields are ignored: without a network there are neither hosts nor a repository. */
export function planSandbox({ name, network, hosts, repository }: NewSandboxForm): SandboxPlan {
  const chosenName = name.trim()
  if (chosenName !== '' && (!NAME.test(chosenName) || isSandboxId(chosenName)))
    return { kind: 'invalid', problem: sandboxTexts.create.badName }
  const address = network === 'none' ? '' : repository.trim()
  if (address !== '' && !isRepositoryAddress(address))
    return { kind: 'invalid', problem: sandboxTexts.create.badRepository }
  const allow = network === 'allowlist' ? readHosts(hosts) : []
  if (network === 'allowlist' && allow.length === 0)
    return { kind: 'invalid', problem: sandboxTexts.create.noHosts }
  return {
    kind: 'valid',
    sandbox: {
      ...(chosenName === '' ? {} : { name: chosenName }),
      network: { policy: network, allow },
      start: true,
    },
    ...(address === '' ? {} : { firstCommand: cloneCommand(address) }),
  }
}

/** True for https URLs without credentials; never an option or a git transport helper. */
export function isRepositoryAddress(text: string): boolean {
  try {
    const { protocol, username, password } = new URL(text)
    return protocol === 'https:' && username === '' && password === '' && !/\s/.test(text)
  } catch {
    // Not a URL.
    return false
  }
}

/** Prints the command, runs it, and continues as the user's shell. */
const CLONE_THEN_SHELL = `printf 'git clone %s\\n' "$1"; git clone -- "$1" .; exec "\${SHELL:-/bin/sh}" -l`

/**
 * Clones a repository into the terminal's working directory. The URL is passed as an argument, never inserted into
 * the script.
 */
export function cloneCommand(address: string): FirstCommand {
  return { cmd: '/bin/sh', args: ['-c', CLONE_THEN_SHELL, 'clone', new URL(address).href] }
}
