export default function QueueView() {
  return null;
}
