import { openSync } from 'node:fs'
import { closeFd, ioctlValue, O_NOCTTY, O_NONBLOCK, O_RDWR } from '../processes/linux/libc.ts'
import type { AsUser } from '../processes/run-as.ts'
import type { PaneProcess } from './pane-process.ts'

/** `tcflow(3)`: suspends and resumes the output of a terminal. */
const TCXONC = 0x540a
const TCOOFF = 0
const TCOON = 1

/**
 * A pane that sessions show. While one of them is paused, the pane's terminal is suspended, so its programs block as on a
 * terminal without a reader. tmux's own pause would drop output.
 */
export class OpenPane {
  readonly #processes = new Set<PaneProcess>()
  readonly #paused = new Set<PaneProcess>()
  readonly #asUser: AsUser
  /** Of the pane's program, which `respawn-pane` replaces together with its terminal. */
  #pid: number | undefined
  /** Undefined when the terminal cannot be opened; then nothing is suspended. */
  #terminalFd: number | undefined

  constructor(asUser: AsUser) {
    this.#asUser = asUser
  }

  /** Uses the pane's terminal. `terminal` comes from the tmux server, which the sandbox's user controls. */
  follow({ pid, terminal }: { readonly pid: number; readonly terminal: string }): void {
    if (pid === this.#pid) return
    this.#pid = pid
    this.#close()
    if (!/^\/dev\/pts\/\d+$/.test(terminal)) return
    try {
      this.#terminalFd = this.#asUser(() => openSync(terminal, O_RDWR | O_NOCTTY | O_NONBLOCK))
    } catch {
      // The pane has just ended.
    }
    if (this.#paused.size > 0) this.#suspend(true)
  }

  get isUnused(): boolean {
    return this.#processes.size === 0
  }

  add(process: PaneProcess): void {
    this.#processes.add(process)
  }

  remove(process: PaneProcess): void {
    this.setPaused(process, false)
    this.#processes.delete(process)
    if (this.isUnused) this.#close()
  }

  setPaused(process: PaneProcess, isPaused: boolean): void {
    const wasSuspended = this.#paused.size > 0
    if (isPaused) this.#paused.add(process)
    else this.#paused.delete(process)
    const isSuspended = this.#paused.size > 0
    if (isSuspended !== wasSuspended) this.#suspend(isSuspended)
  }

  #suspend(isSuspended: boolean): void {
    if (this.#terminalFd !== undefined) ioctlValue(this.#terminalFd, TCXONC, isSuspended ? TCOOFF : TCOON)
  }

  #close(): void {
    if (this.#terminalFd !== undefined) closeFd(this.#terminalFd)
    this.#terminalFd = undefined
  }

  /** Every process; safe while they end. */
  all(): readonly PaneProcess[] {
    return [...this.#processes]
  }
}
