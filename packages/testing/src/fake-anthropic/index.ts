import { type FakeModel, type FakeModelOptions, type ModelApi, openFakeModel } from '../fake-model/server.ts'
import { formatEvent, formatMessage, readConversation, streamMessage } from './messages.ts'

export {
  type Block,
  callTool,
  type FakeUsage,
  type Fault,
  inTurns,
  type ModelRequest,
  type Reply,
  say,
  type Script,
  withFaults,
} from '../fake-model/script.ts'
export type {
  FakeModel as FakeAnthropic,
  FakeModelOptions as FakeAnthropicOptions,
} from '../fake-model/server.ts'

const MESSAGES: ModelApi = {
  path: '/v1/messages',
  fixed: { '/v1/messages/count_tokens': { input_tokens: 100 } },
  readConversation,
  formatMessage,
  *streamMessage(id, { model }, reply) {
    for (const event of streamMessage(id, model, reply)) yield formatEvent(event)
  },
  formatErrorEvent: (error) => formatEvent({ event: 'error', data: { type: 'error', error } }),
}

/** Answers `POST /v1/messages` and `…/count_tokens`, as Anthropic's API does. */
export function openFakeAnthropic(options: FakeModelOptions): Promise<FakeModel> {
  return openFakeModel(MESSAGES, options)
}
