export function ChatPage() {
  return <p className="p-6">ChatPage</p>
}
