export default function DeliveriesView() {
  return null;
}
