import type { AgentProgramStatus } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'
import { usedVersion } from './agents-folder.ts'
import { findProgram, installAgent, type InstallOptions } from './install-agent.ts'

/** Read when it is needed, because finding the registry takes a moment. */
type Sources = () => Omit<InstallOptions, 'name' | 'version' | 'onProgress'>

type Progress = Omit<Extract<AgentProgramStatus, { state: 'installing' }>, 'state'>

/** Installs programs of agents when runs need them, once at a time. */
export class AgentInstaller {
  readonly #sources: Sources
  readonly #notify: (line: string) => void
  readonly #progress = new Map<string, Progress>()
  readonly #problems = new Map<string, string>()

  constructor(sources: Sources, notify: (line: string) => void) {
    this.#sources = sources
    this.#notify = notify
  }

  /** Starts to install a program unless it is installed; the status says how far it is. A failed one is tried again. */
  ensure(name: string): AgentProgramStatus {
    const sources = this.#sources()
    const program = findProgram({ ...sources, name })
    const version = usedVersion(sources.folder, program)
    if (version !== undefined) return { state: 'installed', version }
    const progress = this.#progress.get(name)
    if (progress !== undefined) return { state: 'installing', ...progress }
    const problem = this.#problems.get(name)
    if (problem !== undefined) {
      this.#problems.delete(name)
      return { state: 'failed', problem }
    }
    void this.#install(name, program.version)
    return { state: 'installing', version: program.version, receivedBytes: 0, totalBytes: 0 }
  }

  async #install(name: string, version: string): Promise<void> {
    this.#progress.set(name, { version, receivedBytes: 0, totalBytes: 0 })
    this.#notify(`Installing agent ${name} ${version} …`)
    let shown = 0
    try {
      await installAgent({
        ...this.#sources(),
        name,
        onProgress: (receivedBytes, totalBytes) => {
          this.#progress.set(name, { version, receivedBytes, totalBytes })
          const percent = totalBytes === 0 ? 0 : Math.floor((receivedBytes * 100) / totalBytes)
          if (percent < shown + 25) return
          shown = percent - (percent % 25)
          this.#notify(`Installing agent ${name} ${version}: ${shown} %`)
        },
      })
      this.#notify(`Installed agent ${name} ${version}`)
    } catch (error) {
      const { message } = SandwireError.from(error)
      this.#problems.set(name, message)
      this.#notify(message)
    } finally {
      this.#progress.delete(name)
    }
  }
}
