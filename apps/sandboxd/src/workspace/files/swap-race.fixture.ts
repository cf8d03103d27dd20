import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import type { Resolve } from '../beneath/resolve.ts'
import type { FileContext } from './context.ts'
import {
  hasSecretInside,
  containsSecret,
  lookOutside,
  openFixture,
  type Fixture,
  VERBS,
} from './files.fixture.ts'

/** Result of a race. */
interface RaceResult {
  readonly operations: number
  /** Operations that succeeded and failed: both must occur for the race to be real. */
  readonly done: number
  readonly refused: number
  /** Operations that disclosed, copied or changed something outside. */
  readonly escapes: number
}

/** Paths through the swapped folder. The folder itself is only read, or there would be nothing left to swap. */
const TARGETS = ['swap/f', 'swap/new', 'swap/deep/f', 'swap/deep', 'swap/victim'] as const
const LOOKS: readonly string[] = ['stat', 'stat through symlinks', 'list', 'read', 'open folder', 'walk']

/** Operations between two checks of the files outside. */
const LOOK_EVERY = 200
/** Operations between two refills. */
const REFILL_EVERY = 5

interface Swapper extends AsyncDisposable {
  /** Runs an action while nothing is swapped, because a check by name would be misled as well. */
  readonly whilePaused: (action: () => void) => void
  /** Restores removed files in the folder itself, wherever it is now. */
  readonly refill: () => void
}

/** Continuously exchanges the folder `swap` with a link that leads outside. */
async function startSwapper(fixture: Fixture): Promise<Swapper> {
  const folder = path.join(fixture.root, 'swap')
  mkdirSync(folder)
  symlinkSync('../outside', path.join(fixture.root, 'other'))
  const fd = openSync(folder, 'r')
  const program = new URL('./swapper.fixture.ts', import.meta.url).pathname
  const child = Bun.spawn([process.execPath, program, fixture.root, 'swap', 'other'], { stdout: 'pipe' })
  await child.stdout.getReader().read()
  const refill = (): void => {
    writeFileSync(path.join(fixture.root, 'plain'), 'harmless')
    rmSync(`/proc/self/fd/${fd}/deep`, { recursive: true, force: true })
    mkdirSync(`/proc/self/fd/${fd}/deep`)
    for (const name of ['f', 'victim', 'deep/f']) {
      rmSync(`/proc/self/fd/${fd}/${name}`, { recursive: true, force: true })
      writeFileSync(`/proc/self/fd/${fd}/${name}`, 'harmless')
    }
  }
  const whilePaused = (action: () => void): void => {
    child.kill('SIGSTOP')
    while (!isStopped(child.pid));
    action()
    child.kill('SIGCONT')
  }
  return {
    refill,
    whilePaused,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await child.exited
      closeSync(fd)
    },
  }
}

function isStopped(pid: number): boolean {
  return /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
}

/** Runs every operation while a folder of the path is swapped with a link that leads outside. */
export async function runSwapRace(resolve: Resolve, operations: number): Promise<RaceResult> {
  using fixture = openFixture(resolve)
  const before = lookOutside(fixture).join()
  await using swapper = await startSwapper(fixture)
  const counts = { done: 0, refused: 0, escapes: 0 }
  const look = (): void => {
    if (hasSecretInside(fixture) || lookOutside(fixture).join() !== before) counts.escapes += 1
  }
  const verbs = Object.entries(VERBS)
  for (let at = 0; at < operations; at += 1) {
    if (at % LOOK_EVERY === 0) swapper.whilePaused(look)
    if (at % REFILL_EVERY === 0) swapper.refill()
    const [name, verb] = verbs[at % verbs.length] ?? []
    const targets = LOOKS.includes(name ?? '') ? ['swap', ...TARGETS] : TARGETS
    const target = targets[Math.floor(at / verbs.length) % targets.length]
    if (verb !== undefined && target !== undefined) attempt(fixture.context, verb, target, counts)
  }
  swapper.whilePaused(look)
  return { operations, ...counts }
}

function attempt(
  context: FileContext,
  verb: (typeof VERBS)[string],
  target: string,
  counts: { done: number; refused: number; escapes: number },
): void {
  try {
    const output = JSON.stringify(verb(context, target)) ?? ''
    counts.done += 1
    if (containsSecret(output)) counts.escapes += 1
  } catch (error) {
    if (SandwireError.from(error).code === 'internal') throw error
    counts.refused += 1
  }
}

/** The naive implementation: resolves the path, checks it and opens it by name. Returns the number of escapes. */
export async function runNaiveRace(resolve: Resolve, operations: number): Promise<number> {
  using fixture = openFixture(resolve)
  await using swapper = await startSwapper(fixture)
  swapper.refill()
  for (let at = 0; at < operations; at += 1) {
    try {
      const named = path.join(fixture.root, 'swap/f')
      const real = realpathSync(named)
      if (!real.startsWith(`${fixture.root}/`)) continue
      if (readFileSync(named, 'utf8').includes('SECRET')) return 1
    } catch {
      // Swapped at that moment.
    }
  }
  return 0
}
