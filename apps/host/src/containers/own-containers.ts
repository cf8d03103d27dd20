import { existsSync, readdirSync } from 'node:fs'
import { OBJECT_FILE } from '../control/object-databases.ts'
import { SANDBOX_OBJECTS } from '../control/workerd-config.ts'
import type { Docker, FoundContainer } from './docker.ts'

/** sandboxd sends clients their last bytes within 8 s (deploy/sandbox/startup.sh), then control saves the files. */
const STOP_SECONDS = 25
/** workerd's container names: the object's id, with a suffix for the sidecar. */
const NAME = new RegExp(`^workerd-${SANDBOX_OBJECTS}-([0-9a-f]{64})(-proxy)?$`)

const SIDECAR = /-proxy$/

type Engine = Pick<Docker, 'list' | 'stop' | 'remove'>

/** The containers of one data folder: those whose object has a database in it. */
export class OwnContainers {
  readonly #engine: Engine
  readonly #folder: string

  constructor(engine: Engine, folder: string) {
    this.#engine = engine
    this.#folder = folder
  }

  /** Counts running containers, and removes stopped ones. */
  async adopt(): Promise<number> {
    const all = await this.list()
    const running = new Set(all.flatMap(({ name, isRunning }) => (isRunning ? [name] : [])))
    const ended = all.filter(({ name }) => !running.has(name.replace(SIDECAR, '')))
    await Promise.all(ended.map(({ name }) => this.#engine.remove(name)))
    return [...running].filter((name) => !SIDECAR.test(name)).length
  }

  /** Stops all of them; clients receive their last output first. */
  async stop(): Promise<void> {
    const all = await this.list()
    const sandboxes = all.filter(({ name, isRunning }) => isRunning && !SIDECAR.test(name))
    await Promise.all(sandboxes.map(({ name }) => this.#engine.stop(name, STOP_SECONDS)))
  }

  /** Stops and removes all of them. */
  async end(): Promise<void> {
    await this.stop()
    const all = await this.list()
    await Promise.all(all.map(({ name }) => this.#engine.remove(name)))
  }

  /** All of them, sidecars and stopped ones included. */
  async list(): Promise<readonly FoundContainer[]> {
    if (!existsSync(this.#folder)) return []
    const objects = new Set(readdirSync(this.#folder).flatMap((name) => OBJECT_FILE.exec(name)?.[1] ?? []))
    if (objects.size === 0) return []
    const all = await this.#engine.list(`workerd-${SANDBOX_OBJECTS}-`)
    return all.filter(({ name }) => objects.has(NAME.exec(name)?.[1] ?? ''))
  }
}
