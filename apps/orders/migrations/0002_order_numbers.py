"""Order numbers come from a sequence in each tenant's schema; a number used by a refused order leaves a gap."""

from django.db import migrations


class Migration(migrations.Migration):
    """Make the sequence."""

    dependencies = [("orders", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "CREATE SEQUENCE order_number_seq",
            "DROP SEQUENCE order_number_seq",
            hints={"realm": "tenant"},
        )
    ]
