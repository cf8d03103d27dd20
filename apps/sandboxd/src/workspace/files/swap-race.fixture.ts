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
  isSecretTold,
  lookOutside,
  openFixture,
  type Fixture,
  VERBS,
} from './files.fixture.ts'

/** How a race went. */
interface RaceResult {
  readonly operations: number
  /** Those that were done, and those that were refused: a race that is won or lost every time is none. */
  readonly done: number
  readonly refused: number
  /** Something outside was told, brought in or changed. */
  readonly escapes: number
}

/** Paths through the folder that is swapped; it is itself only looked at, or there would be nothing left to swap. */
const TARGETS = ['swap/f', 'swap/new', 'swap/deep/f', 'swap/deep', 'swap/victim'] as const
const LOOKS: readonly string[] = ['stat', 'stat behind links', 'list', 'read', 'open folder', 'walk']

/** How many operations go by between two looks at what is outside. */
const LOOK_EVERY = 200
/** How many go by before there is again something to take away. */
const REFILL_EVERY = 5

interface Swapper extends AsyncDisposable {
  /** Does something while nothing is swapped: whoever looks by names would be misled as well. */
  readonly whilePaused: (action: () => void) => void
  /** Puts back what operations took away, in the folder itself, wherever it is now. */
  readonly refill: () => void
}

/** Exchanges the folder `swap` in a fixture with a link that leads out, all the time. */
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

/** Does everything to files while a folder on the way is swapped with a link that leads out. */
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
    const told = JSON.stringify(verb(context, target)) ?? ''
    counts.done += 1
    if (isSecretTold(told)) counts.escapes += 1
  } catch (error) {
    if (SandwireError.from(error).code === 'internal') throw error
    counts.refused += 1
  }
}

/** What is usually written instead: asks where the path leads, looks at the answer, and opens it by its name. Returns escapes. */
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
      // Swapped meanwhile.
    }
  }
  return 0
}
