/** A program that offers tools to an agent, by the Model Context Protocol over stdin and stdout. */
export interface ToolServer {
  readonly name: string
  readonly argv: readonly [string, ...string[]]
}
