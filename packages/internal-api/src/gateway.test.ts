import { expect, test } from 'bun:test'
import { gitEnvironment, modelBaseUrl } from './gateway.ts'

test('git reaches the hosts of a run through the gateway, and the token is in no URL', () => {
  expect(gitEnvironment('http://127.0.0.1:3129', 'sgw_x', ['github.com'])).toEqual({
    GIT_CONFIG_COUNT: '2',
    GIT_CONFIG_KEY_0: 'url.http://127.0.0.1:3129/git/github.com/.insteadOf',
    GIT_CONFIG_VALUE_0: 'https://github.com/',
    GIT_CONFIG_KEY_1: 'http.http://127.0.0.1:3129/.extraHeader',
    GIT_CONFIG_VALUE_1: 'Authorization: Bearer sgw_x',
    GIT_TERMINAL_PROMPT: '0',
  })
  expect(modelBaseUrl('http://127.0.0.1:3129', 'anthropic')).toBe('http://127.0.0.1:3129/models/anthropic')
})
