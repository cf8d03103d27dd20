import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'bun:test'
import type { ToolPlan } from '../tool.ts'
import { parseConfigNames } from './git-command.ts'
import { createFixture, type Fixture } from './git-workspace.fixture.ts'

type Spoil = (plan: ToolPlan) => ToolPlan

/** A setting that makes git run a program, and the protection against it. */
interface Planted {
  readonly name: string
  /** Installs a program that creates a marker file when it runs. */
  readonly plant: (fixture: Fixture, program: string) => void
  readonly without: Spoil
}

function withoutSettings(isMatch: (key: string) => boolean): Spoil {
  return (plan) => {
    const env = Object.entries(plan.env ?? {}).map(([name, value]) =>
      name.startsWith('GIT_CONFIG_KEY_') && isMatch(value) ? [name, 'sandwire.nothing'] : [name, value],
    )
    return { ...plan, env: Object.fromEntries(env) }
  }
}

const withoutSetting = (key: string): Spoil => withoutSettings((name) => name === key)

function withoutVariable(name: string): Spoil {
  return ({ env = {}, ...plan }) => {
    const { [name]: _, ...rest } = env
    return { ...plan, env: rest }
  }
}

function withoutArgument(argument: string): Spoil {
  return (plan) => {
    const [program, ...args] = plan.argv
    return { ...plan, argv: [program, ...args.filter((arg) => arg !== argument)] }
  }
}

function plantHooks(folder: string, program: string): void {
  mkdirSync(folder, { recursive: true })
  const names = [
    'pre-commit',
    'prepare-commit-msg',
    'commit-msg',
    'post-commit',
    'post-checkout',
    'post-rewrite',
  ]
  for (const name of [
    ...names,
    'post-index-change',
    'reference-transaction',
    'pre-auto-gc',
    'fsmonitor-watchman',
  ]) {
    writeFileSync(join(folder, name), `#!/bin/sh\nexec ${program}\n`)
    chmodSync(join(folder, name), 0o755)
  }
}

function plantFilter(fixture: Fixture, filter: string, setting: string, program: string): void {
  fixture.write('.gitattributes', `* filter=${filter}\n`)
  fixture.git('config', `filter.${filter}.${setting}`, program)
}

/** A remote that git would ask for missing objects, such as the first version of the file. */
function plantRemote(fixture: Fixture, settings: Readonly<Record<string, string>>): void {
  const blob = fixture.git('rev-parse', 'HEAD~1:file').trim()
  rmSync(join(fixture.root, '.git/objects', blob.slice(0, 2), blob.slice(2)))
  const partial = { 'core.repositoryFormatVersion': '1', 'extensions.partialClone': 'origin' }
  for (const [key, value] of Object.entries({ ...partial, 'remote.origin.promisor': 'true', ...settings }))
    fixture.git('config', key, value)
}

/** A commit that claims to be signed. */
function plantSignature(fixture: Fixture): void {
  const text = fixture.git('cat-file', 'commit', 'HEAD')
  const signed = text.replace(
    '\n\n',
    '\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----\n\n',
  )
  writeFileSync(join(fixture.home, 'signed'), signed)
  const oid = fixture.git('hash-object', '-t', 'commit', '-w', join(fixture.home, 'signed')).trim()
  fixture.git('update-ref', 'HEAD', oid)
}

function plantSubmodule(fixture: Fixture, setting: 'clean' | 'smudge', program: string): void {
  mkdirSync(join(fixture.root, 'origin'))
  fixture.gitIn('origin', 'init', '--quiet')
  writeFileSync(join(fixture.root, 'origin/inner'), 'one')
  fixture.gitIn('origin', 'add', '.')
  fixture.gitIn('origin', 'commit', '--quiet', '--message', 'inner')
  fixture.git('submodule', '--quiet', 'add', './origin', 'module')
  fixture.git('config', '--file', '.gitmodules', 'submodule.module.ignore', 'none')
  fixture.git('commit', '--quiet', '--message', 'module')
  writeFileSync(join(fixture.root, 'module/inner'), 'two')
  writeFileSync(join(fixture.root, 'module/.gitattributes'), '* filter=z\n')
  fixture.gitIn('module', 'config', `filter.z.${setting}`, program)
}

/** Neither overridden nor checked before files are restored. */
const FILTERS: Spoil = (plan) => {
  const [program, ...args] = plan.argv
  const unasked = args.map((arg) => (arg === 'filter' ? 'nothing' : arg))
  return withoutSettings((key) => key.startsWith('filter.'))({ ...plan, argv: [program, ...unasked] })
}

const PLANTED: readonly Planted[] = [
  {
    name: 'core.fsmonitor',
    plant: (fixture, program) => fixture.git('config', 'core.fsmonitor', program),
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'core.fsmonitor of the user',
    plant: (fixture, program) => fixture.git('config', '--global', 'core.fsmonitor', program),
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'core.fsmonitor in a file that is included',
    plant: (fixture, program) => {
      fixture.write('included', `[core]\nfsmonitor = ${program}\n`)
      fixture.git('config', 'include.path', '../included')
    },
    without: withoutSetting('core.fsmonitor'),
  },
  {
    name: 'hooks',
    plant: (fixture, program) => plantHooks(join(fixture.root, '.git/hooks'), program),
    without: (plan) => withoutVariable('GIT_COMMON_DIR')(withoutSetting('core.hooksPath')(plan)),
  },
  {
    name: 'core.hooksPath',
    plant: (fixture, program) => {
      plantHooks(join(fixture.root, 'planted'), program)
      fixture.git('config', 'core.hooksPath', join(fixture.root, 'planted'))
    },
    without: withoutSetting('core.hooksPath'),
  },
  {
    name: 'diff.external',
    plant: (fixture, program) => fixture.git('config', 'diff.external', program),
    without: withoutArgument('--no-ext-diff'),
  },
  {
    name: 'the command of a diff driver',
    plant: (fixture, program) => {
      fixture.write('.gitattributes', '* diff=z\n')
      fixture.git('config', 'diff.z.command', program)
    },
    without: withoutArgument('--no-ext-diff'),
  },
  {
    name: 'the textconv of a diff driver',
    plant: (fixture, program) => {
      fixture.write('.gitattributes', '* diff=z\n')
      fixture.git('config', 'diff.z.textconv', program)
    },
    without: withoutArgument('--no-textconv'),
  },
  ...['clean', 'smudge', 'process'].map((setting) => ({
    name: `filter.z.${setting}`,
    plant: (fixture: Fixture, program: string) => plantFilter(fixture, 'z', setting, program),
    without: FILTERS,
  })),
  ...['a=b.c', 'Zz.clean', '-c', 'a"b', '🦜'].map((filter) => ({
    name: `a filter with the name ${filter}`,
    plant: (fixture: Fixture, program: string) => plantFilter(fixture, filter, 'clean', program),
    without: FILTERS,
  })),
  {
    name: 'a filter in the attributes of the repository itself',
    plant: (fixture, program) => {
      mkdirSync(join(fixture.root, '.git/info'), { recursive: true })
      fixture.write('.git/info/attributes', '* filter=z\n')
      fixture.git('config', 'filter.z.clean', program)
    },
    without: FILTERS,
  },
  {
    name: 'gpg.program for commits',
    plant: (fixture, program) => {
      fixture.git('config', 'gpg.program', program)
      fixture.git('config', 'commit.gpgSign', 'true')
    },
    without: withoutSetting('commit.gpgSign'),
  },
  {
    name: 'gpg.program for the log',
    plant: (fixture, program) => {
      plantSignature(fixture)
      fixture.git('config', 'gpg.program', program)
      fixture.git('config', 'log.showSignature', 'true')
    },
    without: withoutSetting('log.showSignature'),
  },
  {
    name: 'a remote with ext::',
    plant: (fixture, program) =>
      plantRemote(fixture, { 'remote.origin.url': `ext::${program}`, 'protocol.ext.allow': 'always' }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'core.sshCommand',
    plant: (fixture, program) =>
      plantRemote(fixture, { 'remote.origin.url': 'ssh://example.test/x', 'core.sshCommand': program }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'remote.origin.uploadpack',
    plant: (fixture, program) =>
      plantRemote(fixture, { 'remote.origin.url': fixture.root, 'remote.origin.uploadpack': program }),
    without: withoutVariable('GIT_ALLOW_PROTOCOL'),
  },
  {
    name: 'a filter in a submodule',
    plant: (fixture, program) => plantSubmodule(fixture, 'clean', program),
    without: withoutArgument('--ignore-submodules=dirty'),
  },
  {
    name: 'a filter in a submodule that is to be followed',
    plant: (fixture, program) => {
      plantSubmodule(fixture, 'smudge', program)
      fixture.git('config', 'submodule.recurse', 'true')
    },
    without: withoutSetting('submodule.recurse'),
  },
]

/** Requests every route; the last ones change what the others need. */
async function* askEverything(fixture: Fixture): AsyncGenerator<unknown, void> {
  const asks = [
    'git/status',
    'compat/git/status',
    'compat/git/diff?path=file',
    'compat/git/show?path=file',
    'git/diff',
    'git/diff?path=file',
    'git/diff?staged=1',
    'git/diff?from=HEAD',
    'git/diff?from=HEAD~1&to=HEAD',
    'git/diff?to=HEAD',
    'git/diff?path=file&old=other',
    'git/show?path=file',
    'git/show?path=file&ref=HEAD~1',
    'git/log',
    'git/log?path=file',
    'git/branches',
  ]
  for (const ask of asks) yield fixture.get(ask)
  yield fixture.post('git/unstage', { paths: ['file'] })
  yield fixture.post('git/discard', { paths: ['other'] })
  yield fixture.post('git/discard', { paths: ['module'] })
  yield fixture.post('git/discard', { paths: ['new'], untracked: true })
  yield fixture.post('git/stage', { paths: ['.'] })
  yield fixture.post('git/stage', { paths: ['file'] })
  yield fixture.post('git/stage', { paths: ['module'] })
  yield fixture.post('git/commit', { message: 'next' })
  yield fixture.post('git/commit', { message: 'nothing' })
  yield fixture.post('git/commit', { message: 'again', amend: true })
}

/** A repository with two commits and all kinds of changes, and a program that creates a marker file. */
function createPlantedFixture(plant: Planted['plant'], spoil?: Spoil): Fixture & { isMarked(): boolean } {
  const fixture = createFixture(spoil === undefined ? {} : { spoil })
  for (const content of ['one\n', 'two\n']) {
    fixture.write('file', content)
    fixture.write('other', content)
    fixture.git('add', '.')
    fixture.git('commit', '--quiet', '--message', content)
  }
  const [program, mark] = [join(fixture.home, 'program'), join(fixture.home, 'mark')]
  writeFileSync(program, `#!/bin/sh\ntouch ${mark}\n`)
  chmodSync(program, 0o755)
  plant(fixture, program)
  // Markers from the installation itself do not count.
  rmSync(mark, { force: true })
  for (const path of ['file', 'other', 'new']) fixture.write(path, 'three\n')
  return { ...fixture, isMarked: () => existsSync(mark) }
}

test.each([...PLANTED])('no route runs $name (threat T19)', async ({ plant }) => {
  using fixture = createPlantedFixture(plant)
  for await (const _ of askEverything(fixture)) expect(fixture.isMarked()).toBe(false)
})

test.each([...PLANTED])('$name runs without the protection', async ({ plant, without }) => {
  using fixture = createPlantedFixture(plant, without)
  for await (const _ of askEverything(fixture)) if (fixture.isMarked()) return
  expect(fixture.isMarked()).toBe(true)
})

test('starts no other program that git supports (threat T19)', async () => {
  using fixture = createPlantedFixture(({ git }, program) => {
    const settings = ['core.pager', 'pager.status', 'pager.diff', 'pager.log', 'pager.show', 'core.editor']
    const more = ['sequence.editor', 'core.askPass', 'credential.helper', 'core.gitProxy', 'gpg.ssh.program']
    const tools = [
      'alias.status',
      'alias.diff',
      'alias.rev-parse',
      'merge.z.driver',
      'interactive.diffFilter',
    ]
    for (const key of [...settings, ...more, ...tools, 'core.alternateRefsCommand'])
      git('config', key, `!${program}`)
    git('config', 'trailer.z.command', program)
    git('config', 'uploadpack.packObjectsHook', program)
  })
  for await (const _ of askEverything(fixture)) expect(fixture.isMarked()).toBe(false)
})

test('a file with a filter is neither staged nor restored', async () => {
  using fixture = createPlantedFixture((planted, program) => plantFilter(planted, 'z', 'clean', program))
  for (const [route, message] of [
    ['git/stage', /filter '?z'? failed/],
    ['git/discard', /it needs a filter/],
  ] as const)
    expect(await fixture.post(route, { paths: ['file'] })).toMatchObject({
      status: 409,
      body: { error: { code: 'git_failed', message: expect.stringMatching(message) } },
    })
})

test("refuses git when a filter's name does not fit into the environment (threat T19)", async () => {
  using fixture = createPlantedFixture((planted, program) => {
    planted.write('.gitattributes', Buffer.from('* filter=\xff\n', 'latin1'))
    planted.write('.git/config', Buffer.from(`[filter "\xff"]\nclean = ${program}\n`, 'latin1'))
  })
  for await (const answer of askEverything(fixture)) expect(answer).not.toMatchObject({ status: 500 })
  expect(fixture.isMarked()).toBe(false)
  expect(await fixture.get('git/status')).toMatchObject({ body: { error: { code: 'git_failed' } } })
})

test("finds configured hooks and the system's filters by name", () => {
  const names = [
    'sandwire.witness',
    'sandwire.global',
    'hook.lint.command',
    'hook.lint.event',
    'filter.lfs.process',
    'filter.x.y.clean',
  ]
  expect(parseConfigNames(names)).toEqual({ filters: ['lfs', 'x.y'], hooks: ['lint'], hasIdentity: false })
})

test('refuses a git that reads no configuration from the environment (threat T19)', async () => {
  for (const names of [['user.name'], ['sandwire.witness'], ['sandwire.global']])
    expect(() => parseConfigNames(names)).toThrow('2.32 or newer')
  using fixture = createFixture({ spoil: withoutVariable('GIT_CONFIG_COUNT') })
  expect(await fixture.get('git/status')).toMatchObject({ body: { error: { code: 'git_failed' } } })
})

test('a commit starts no maintenance', async () => {
  const plant: Planted['plant'] = ({ git, home }) => {
    git('config', 'gc.auto', '1')
    git('config', 'gc.autoDetach', 'false')
    // Git counts the objects whose names begin with 17, as these do.
    for (const at of [1, 8, 46, 76]) {
      writeFileSync(join(home, 'object'), `object ${at}`)
      git('hash-object', '-w', join(home, 'object'))
    }
  }
  const packs = async (spoil?: Spoil): Promise<number> => {
    using fixture = createPlantedFixture(plant, spoil)
    await fixture.post('git/stage', { paths: ['file'] })
    expect(await fixture.post('git/commit', { message: 'x' })).toMatchObject({ status: 200 })
    return readdirSync(join(fixture.root, '.git/objects/pack')).length
  }
  expect(await packs()).toBe(0)
  expect(await packs(withoutSetting('maintenance.auto'))).toBeGreaterThan(0)
})

test('ignores core.worktree (threat T19)', async () => {
  const plant: Planted['plant'] = (fixture) => {
    mkdirSync(join(fixture.home, 'elsewhere'))
    fixture.git('config', 'core.worktree', join(fixture.home, 'elsewhere'))
  }
  const elsewhere = async (spoil?: Spoil): Promise<readonly string[]> => {
    using fixture = createPlantedFixture(plant, spoil)
    await fixture.post('git/discard', { paths: ['file'] })
    return readdirSync(join(fixture.home, 'elsewhere'))
  }
  expect(await elsewhere()).toEqual([])
  const without: Spoil = (plan) => withoutVariable('GIT_COMMON_DIR')(withoutVariable('GIT_WORK_TREE')(plan))
  expect(await elsewhere(without)).toEqual(['file'])
})

test('does not use the .git of a parent folder', async () => {
  using fixture = createPlantedFixture(() => undefined)
  renameSync(join(fixture.root, '.git'), join(fixture.root, '../.git'))
  expect(await fixture.get('git/status')).toMatchObject({ body: { error: { code: 'not_a_repository' } } })
})

/** Configuration files that a process of the sandbox changes after they were checked. */
const SWAPPED: readonly { readonly name: string; readonly file: (fixture: Fixture) => string }[] = [
  { name: 'the configuration of the repository', file: ({ root }) => join(root, '.git/config') },
  { name: 'the configuration of the user', file: ({ home }) => join(home, '.gitconfig') },
  { name: 'the configuration of the work tree', file: ({ root }) => join(root, '.git/config.worktree') },
  { name: 'an included file', file: ({ root }) => join(root, 'included') },
]

describe.each([...SWAPPED])('$name', ({ file }) => {
  /** Adds a filter for all files to the configuration before each command, and removes it before the configuration is read. */
  function createSwapped(without: Spoil = (plan) => plan): ReturnType<typeof createPlantedFixture> {
    let swap: (isSwapped: boolean) => void = () => {}
    const spoil: Spoil = (plan) => {
      swap(!plan.argv.includes('config') && !plan.argv.includes('--absolute-git-dir'))
      return without(plan)
    }
    return createPlantedFixture((fixture, program) => {
      fixture.write('included', '')
      for (const [key, value] of [
        ['core.repositoryFormatVersion', '1'],
        ['extensions.worktreeConfig', 'true'],
        ['include.path', '../included'],
      ] as const)
        fixture.git('config', key, value)
      fixture.write('.gitattributes', '* filter=z\n')
      const path = file(fixture)
      const before = existsSync(path) ? readFileSync(path, 'utf8') : ''
      const filters = ['clean', 'smudge', 'process'].map((name) => `\t${name} = ${program}\n`)
      swap = (isSwapped) =>
        writeFileSync(path, isSwapped ? `${before}\n[filter "z"]\n${filters.join('')}` : before)
    }, spoil)
  }

  /** Requests that convert files between the work tree and the index. */
  async function ask(fixture: Fixture): Promise<void> {
    await fixture.get('git/status')
    await fixture.post('git/stage', { paths: ['file', 'new'] })
    await fixture.post('git/commit', { message: 'next' })
    await fixture.post('git/discard', { paths: ['other'] })
  }

  test('runs no filter that is added after it was read (threat T19)', async () => {
    using fixture = createSwapped()
    await ask(fixture)
    expect(fixture.isMarked()).toBe(false)
    expect(fixture.git('log', '--format=%s')).toStartWith('next\n')
  })

  test('runs such a filter without the copy', async () => {
    const without: Spoil = (plan) =>
      withoutVariable('GIT_COMMON_DIR')(
        plan.argv.includes('config') ? plan : withoutVariable('GIT_CONFIG_GLOBAL')(plan),
      )
    using fixture = createSwapped(without)
    await ask(fixture)
    expect(fixture.isMarked()).toBe(true)
  })
})
