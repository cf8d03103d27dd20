import { type CommandSettings, type CommandTemplate, commandName, SHELLS } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import type { Scope } from '../auth/identity.ts'
import { type FilledTemplate, fillTemplate } from './fill-template.ts'

/** Decides which command a caller may start; who may start one in a sandbox at all is decided there. */
export class CommandPolicy {
  readonly #settings: CommandSettings

  constructor(settings: CommandSettings) {
    this.#settings = settings
  }

  get templates(): readonly CommandTemplate[] {
    return this.#settings.templates
  }

  /** Whether anybody may run a command of their own choice. */
  get allowsFree(): boolean {
    return this.#settings.free !== 'nobody'
  }

  /** Throws unless this caller may run this command of its own choice; undefined is the sandbox's shell. */
  checkFree({ scopes }: { readonly scopes: readonly Scope[] }, cmd: string | undefined): void {
    const { free } = this.#settings
    if (!scopes.includes('exec'))
      throw new SandwireError('forbidden', 'Cannot run this: the credential is not good for "exec"')
    if (free === 'nobody')
      throw new SandwireError('forbidden', 'Cannot run this: only templates are run here')
    if (this.#isBlocked(cmd))
      throw new SandwireError('command_blocked', 'Cannot run this: it is blocked here')
  }

  /** The command that a template makes of parameters; throws `bad_template`. */
  fill(id: string, given: readonly (readonly [string, string])[]): FilledTemplate {
    const template = this.#settings.templates.find((each) => each.id === id)
    if (template === undefined) throw new SandwireError('bad_template', 'No template has this id')
    return fillTemplate(template, given)
  }

  #isBlocked(cmd: string | undefined): boolean {
    const { blocked } = this.#settings
    // Which shell a sandbox has is not known here; who blocks one does not mean it to run by default.
    return cmd === undefined
      ? blocked.some((name) => SHELLS.includes(name))
      : blocked.includes(commandName(cmd))
  }
}
