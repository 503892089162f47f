// An agent that passes the conversation to the model, and nothing else.
import { ChatOpenAI } from '@langchain/openai'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'

const model = new ChatOpenAI({
  model: 'bench',
  apiKey: 'bench',
  configuration: { baseURL: process.env.MODEL_URL },
  useResponsesApi: false,
  streaming: true,
  maxRetries: 0,
})

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('agent', async (state) => ({ messages: [await model.invoke(state.messages)] }))
  .addEdge('__start__', 'agent')
  .addEdge('agent', '__end__')
  .compile()
