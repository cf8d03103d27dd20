import { type FakeModel, type FakeModelOptions, openFakeModel } from '../fake-model/server.ts'
import { CHAT_COMPLETIONS } from './chat-completions.ts'

export { callTool, inTurns, type ModelRequest, type Reply, say, type Script } from '../fake-model/script.ts'
export type { FakeModel as FakeOpenAi } from '../fake-model/server.ts'

/** Answers `POST /v1/chat/completions`, as servers with OpenAI's API do. */
export function openFakeOpenAi(options: FakeModelOptions): Promise<FakeModel> {
  return openFakeModel(CHAT_COMPLETIONS, options)
}
