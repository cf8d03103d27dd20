import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'

/** Content of every file outside the workspace. No response may contain it. */
export const SECRET = 'SECRET-4be1'

/** A workspace with hostile symlinks and files, next to folders that no request may read or change. */
export class HostileWorkspace implements Disposable {
  readonly base = mkdtempSync('/tmp/hostile-')
  readonly root = join(this.base, 'workspace')
  readonly outside = join(this.base, 'outside')
  /** Created, outside the workspace, by a program that must not run. */
  readonly mark = join(this.outside, 'mark')
  /** Paths in the workspace that lead outside, nowhere, or to something other than a regular file. */
  readonly traps: readonly string[]
  readonly #links: Readonly<Record<string, string>>

  constructor() {
    for (const folder of [this.root, this.outside, join(this.base, 'workspace-evil')]) mkdirSync(folder)
    for (const folder of ['outside', 'workspace-evil'])
      writeFileSync(join(this.base, folder, 'secret'), `${SECRET} needle\n`)
    writeFileSync(`${this.mark}.sh`, `#!/bin/sh\ntouch ${this.mark}\ncat\n`, { mode: 0o755 })
    this.#links = {
      out: '../outside',
      file: '../outside/secret',
      absolute: this.outside,
      up: '..',
      root: '/proc/self/root',
      cwd: '/proc/self/cwd/../outside',
      fd: '/proc/self/fd/0',
      zero: '/dev/zero',
      loop: 'loop',
      ...Object.fromEntries(
        Array.from({ length: 42 }, (_, at) => [`c${at}`, at === 0 ? '../outside/secret' : `c${at - 1}`]),
      ),
    }
    this.traps = [
      'out',
      'out/secret',
      'out/made',
      'file',
      'absolute/secret',
      'up/outside/secret',
      'cwd/secret',
      'fd',
      `root${this.outside}/secret`,
      'zero',
      'loop',
      'c3',
      'c41',
      'pipe',
      'sealed',
      'sparse',
    ]
    this.#repository()
    this.restore()
  }

  /** Recreates what a request may legitimately remove: a symbolic link, never its target. */
  restore(): void {
    mkdirSync(join(this.root, 'plain'), { recursive: true })
    writeFileSync(join(this.root, 'plain/f'), 'plain needle\n')
    for (const [name, target] of Object.entries(this.#links))
      if (!exists(join(this.root, name))) symlinkSync(target, join(this.root, name))
    if (!existsSync(join(this.root, 'pipe'))) Bun.spawnSync(['mkfifo', join(this.root, 'pipe')])
    if (!existsSync(join(this.root, 'sealed'))) writeFileSync(join(this.root, 'sealed'), 'x', { mode: 0 })
    if (!existsSync(join(this.root, 'sparse')))
      Bun.spawnSync(['truncate', '-s', '8T', join(this.root, 'sparse')])
  }

  /** Names and contents outside the workspace, for comparison. */
  readOutside(): string {
    return ['outside', 'workspace-evil', '']
      .map((folder) => {
        const names = readdirSync(join(this.base, folder)).toSorted()
        const texts = names
          .filter((name) => folder !== '' && name !== 'mark')
          .map((name) => readFileSync(join(this.base, folder, name), 'utf8'))
        return JSON.stringify([folder, names, texts])
      })
      .join('\n')
  }

  /** Files of the workspace that contain a text from outside. */
  findLeaks(): string[] {
    const found = Bun.spawnSync(['grep', '-rlsI', '--exclude=sparse', '--devices=skip', SECRET, this.root])
    return found.stdout.toString().split('\n').filter(Boolean)
  }

  /** Creates a repository whose configuration runs a program wherever git allows one. */
  #repository(): void {
    const git = (...args: string[]): void => {
      const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', HOME: '/nonexistent' }
      Bun.spawnSync(['git', '-c', 'user.name=n', '-c', 'user.email=e@x', ...args], { cwd: this.root, env })
    }
    git('init', '-q', '-b', 'main')
    mkdirSync(join(this.root, 'plain'))
    writeFileSync(join(this.root, 'plain/f'), 'first\n')
    git('add', '.')
    git('commit', '-q', '-m', 'first')
    const program = `${this.mark}.sh`
    for (const key of [
      'core.fsmonitor',
      'diff.external',
      'core.pager',
      'core.sshCommand',
      'core.editor',
      'gpg.program',
      'filter.x.clean',
      'filter.x.smudge',
      'filter.x.process',
      'diff.x.textconv',
      'diff.x.command',
      'credential.helper',
      'merge.x.driver',
      'core.gitProxy',
      'core.alternateRefsCommand',
    ])
      git('config', key, program)
    git('config', 'commit.gpgSign', 'true')
    writeFileSync(join(this.root, '.gitattributes'), '* filter=x diff=x merge=x\n')
    for (const hook of [
      'pre-commit',
      'post-commit',
      'commit-msg',
      'prepare-commit-msg',
      'post-index-change',
    ]) {
      const file = join(this.root, '.git/hooks', hook)
      writeFileSync(file, `#!/bin/sh\nexec ${program}\n`)
      chmodSync(file, 0o755)
    }
    writeFileSync(join(this.root, '.ripgreprc'), `--pre=${program}\n--follow\n--search-zip\n`)
  }

  [Symbol.dispose](): void {
    rmSync(this.base, { recursive: true, force: true })
  }
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
