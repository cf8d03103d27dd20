import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { run } from './debian.ts'

/** Where the clone of this repository is in the root. */
export const CLONE = '/srv/sandwire'
/** The ordinary user, and its own copy of the clone. */
export const USER = { name: 'user', uid: 1000, home: '/home/user', clone: '/home/user/sandwire' } as const

/** Variables by which this machine reaches registries: proxies and certificates. */
const NETWORK_VARIABLES = [
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

const NPM_CACHE = '/var/cache/npm'

/**
 * Runs with the root's folder as $1 and a folder for npm's downloads as $2: mounts what every Linux has, makes the folder the
 * root by pivot_root (bubblewrap refuses to work in a chroot) and stays as the first process of its namespaces, which waits
 * for processes that lost their parent.
 */
const ENTER = `set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --bind "$2" .${NPM_CACHE}
mkdir -p old
pivot_root . old
umount -l /old
rmdir /old
echo ready
while :; do
  sleep 3600 &
  wait
done`

export interface CommandOptions {
  readonly cwd: string
  /** Runs as root unless given. */
  readonly asUser?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** A Debian with nothing but Node, npm and a clone of this repository, in mount and process namespaces of its own. */
export class FreshRoot implements AsyncDisposable {
  readonly folder: string
  readonly #holder: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  readonly #pid: number

  private constructor(folder: string, holder: Bun.Subprocess<'ignore', 'pipe', 'inherit'>, pid: number) {
    this.folder = folder
    this.#holder = holder
    this.#pid = pid
  }

  static async create(debian: string, repository: string, cache: string): Promise<FreshRoot> {
    const folder = path.join(cache, 'root')
    rmSync(folder, { recursive: true, force: true })
    run(['cp', '-a', '--reflink=auto', debian, folder])
    copyNode(folder)
    copyConfiguration(folder)
    addUser(folder)
    run(['git', 'clone', '--quiet', '--no-hardlinks', repository, path.join(folder, CLONE)])
    run(['cp', '-a', path.join(folder, CLONE), path.join(folder, USER.clone)])
    run(['chown', '-R', `${USER.uid}:${USER.uid}`, path.join(folder, USER.home)])
    const downloads = path.join(cache, 'npm')
    mkdirSync(downloads, { recursive: true })
    // Shared by root and the ordinary user.
    run(['chmod', '-R', 'a+rwX', downloads])
    mkdirSync(path.join(folder, NPM_CACHE), { recursive: true })
    const namespaces = ['--mount', '--pid', '--ipc', '--uts', '--fork', '--kill-child']
    const holder = Bun.spawn(['unshare', ...namespaces, 'sh', '-c', ENTER, 'sh', folder, downloads], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const { value } = await holder.stdout.getReader().read()
    if (value === undefined) throw new Error('Cannot enter the root: see the message above')
    // unshare stays in this machine's namespaces; its only child is the first process of the new ones.
    const pid = Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, 'utf8'))
    return new FreshRoot(folder, holder, pid)
  }

  /** Starts a command in the root. */
  spawn(argv: readonly string[], options: CommandOptions): Bun.Subprocess<'pipe', 'pipe', 'pipe'> {
    return Bun.spawn(this.#argv(argv, options), { stdio: ['pipe', 'pipe', 'pipe'] })
  }

  /** Runs a command in the root, showing what it prints as it comes; returns its exit code. */
  show(argv: readonly string[], options: CommandOptions): Promise<number> {
    return Bun.spawn(this.#argv(argv, options), { stdio: ['ignore', 'inherit', 'inherit'] }).exited
  }

  /** Runs a command in the root to its end. */
  async run(
    argv: readonly string[],
    options: CommandOptions & { readonly stdin?: string },
  ): Promise<{ readonly code: number; readonly output: string }> {
    const child = this.spawn(argv, options)
    if (options.stdin !== undefined) await child.stdin.write(options.stdin)
    await child.stdin.end()
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ])
    return { code: await child.exited, output: stdout + stderr }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#holder.kill('SIGKILL')
    await this.#holder.exited
    rmSync(this.folder, { recursive: true, force: true })
  }

  #argv(argv: readonly string[], { cwd, asUser = false, env = {} }: CommandOptions): string[] {
    const passed = NETWORK_VARIABLES.flatMap((name) => {
      const value = process.env[name]
      return value === undefined ? [] : [[name, value] as const]
    })
    const variables = {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: asUser ? USER.home : '/root',
      USER: asUser ? USER.name : 'root',
      LANG: 'C.UTF-8',
      npm_config_cache: NPM_CACHE,
      ...Object.fromEntries(passed),
      ...env,
    }
    const drop = [`--reuid=${USER.uid}`, `--regid=${USER.uid}`, '--clear-groups', '--no-new-privs', '--']
    return [
      'nsenter',
      `--target=${this.#pid}`,
      '--mount',
      '--pid',
      '--ipc',
      '--uts',
      '--root',
      `--wd=/proc/${this.#pid}/root${cwd}`,
      '--',
      ...(asUser ? ['setpriv', ...drop] : []),
      'env',
      '-i',
      ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      ...argv,
    ]
  }
}

/** Copies the Node and npm that run this script: they are the only part of the root that is not from a Debian package. */
function copyNode(folder: string): void {
  const node = process.env['npm_node_execpath'] ?? Bun.which('node')
  const npm = process.env['npm_execpath']
  if (node === null || npm === undefined) throw new Error('Cannot find Node and npm: use npm run fresh')
  const local = path.join(folder, 'usr/local')
  cpSync(realpathSync(node), path.join(local, 'bin/node'))
  // npm_execpath is bin/npm-cli.js of the package.
  const npmPackage = path.dirname(path.dirname(realpathSync(npm)))
  cpSync(npmPackage, path.join(local, 'lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true })
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, path.join(local, 'bin', name))
}

/** Copies what tells apt and npm where packages are, so that the root installs from where this machine does. */
function copyConfiguration(folder: string): void {
  for (const file of ['/etc/resolv.conf', '/etc/hosts', '/etc/ssl/certs', '/etc/apt', '/etc/npmrc'])
    copyInto(folder, file)
  for (const name of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE']) copyInto(folder, process.env[name])
  copyInto(folder, readNpmOption('cafile'))
  copyInto(folder, readNpmOption('globalconfig'), '/usr/local/etc/npmrc')
  for (const home of ['/root', USER.home]) copyInto(folder, readNpmOption('userconfig'), `${home}/.npmrc`)
  writeFileSync(path.join(folder, 'etc/hostname'), 'fresh\n')
}

function readNpmOption(name: string): string | undefined {
  const value = run(['npm', 'config', 'get', name]).trim()
  return value === '' || value === 'null' || value === 'undefined' ? undefined : value
}

/** Copies a file or folder that exists, links followed, to the same path in the root or another one. */
function copyInto(folder: string, from: string | undefined, to = from): void {
  if (from === undefined || to === undefined || !existsSync(from)) return
  const target = path.join(folder, to)
  rmSync(target, { recursive: true, force: true })
  mkdirSync(path.dirname(target), { recursive: true })
  run(['cp', '-rL', '--preserve=mode', from, target])
}

function addUser(folder: string): void {
  run([
    'chroot',
    folder,
    'useradd',
    '--uid',
    String(USER.uid),
    '--create-home',
    '--shell',
    '/bin/bash',
    USER.name,
  ])
}
