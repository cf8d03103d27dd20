import { expect, test } from 'bun:test'
import { createBaseEnv } from './base-env.ts'

const account = { name: 'ada', home: '/home/ada', shell: '/bin/zsh' }

test('createBaseEnv passes on what is listed and nothing else', () => {
  const env = createBaseEnv(
    {
      PATH: '/bin',
      HOME: '/h',
      SECRET_TOKEN: 'x',
      LD_PRELOAD: 'y',
      LANG: 'de_DE.UTF-8',
    },
    account,
  )
  expect(env).toMatchObject({ PATH: '/bin', HOME: '/h', LANG: 'de_DE.UTF-8' })
  expect(Object.keys(env)).not.toContain('SECRET_TOKEN')
  expect(Object.keys(env)).not.toContain('LD_PRELOAD')
})

test('createBaseEnv fills in what a shell needs', () => {
  const env = createBaseEnv({}, account)
  expect(env).toMatchObject({
    HOME: '/home/ada',
    USER: 'ada',
    LOGNAME: 'ada',
    SHELL: '/bin/zsh',
    LANG: 'C.UTF-8',
  })
  expect(env['PATH']).toBeString()
})

test("createBaseEnv describes another user to that user's processes", () => {
  const own = { PATH: '/bin', HOME: '/root', USER: 'root', LOGNAME: 'root', SHELL: '/bin/bash' }
  expect(createBaseEnv(own, account, true)).toMatchObject({
    PATH: '/bin',
    HOME: '/home/ada',
    USER: 'ada',
    LOGNAME: 'ada',
    SHELL: '/bin/zsh',
  })
})
