import { expect, test } from 'bun:test'
import { createBaseEnv } from './base-env.ts'

test('createBaseEnv passes on what is listed and nothing else', () => {
  const env = createBaseEnv({
    PATH: '/bin',
    HOME: '/h',
    SECRET_TOKEN: 'x',
    LD_PRELOAD: 'y',
    LANG: 'de_DE.UTF-8',
  })
  expect(env).toMatchObject({ PATH: '/bin', HOME: '/h', LANG: 'de_DE.UTF-8' })
  expect(Object.keys(env)).not.toContain('SECRET_TOKEN')
  expect(Object.keys(env)).not.toContain('LD_PRELOAD')
})

test('createBaseEnv fills in what a shell needs', () => {
  const env = createBaseEnv({})
  for (const name of ['PATH', 'LANG', 'HOME', 'USER', 'LOGNAME', 'SHELL']) expect(env[name]).toBeString()
})
